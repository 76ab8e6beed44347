"""Modules are told by the list of their own boot; what lies in none of their functions has no name."""

from __future__ import annotations

import json

from bisector.adapters.guest.counting.count_file import RunCounts
from bisector.adapters.guest.counting.function_counts import FunctionCounts
from bisector.adapters.guest.counting.module_symbols import ModuleSymbols
from bisector.adapters.guest.counting.symbol_table import SymbolTable

LIST = """\
ffffffffc0801010 t ext4_get_block.isra.0\t[ext4]
ffffffffc0801040 T ext4_write\t[ext4]
ffffffffc0801040 t also_write\t[ext4]
ffffffffc0801080 t ext4_write.cold\t[ext4]
ffffffffc0900000 t release\t[brd]
ffffffffc0900040 t brd_submit_bio\t[brd]
ffffffffc0a00000 t bpf_prog_6deef7357e7b4530\t[bpf]
0000000000000000 t hidden\t[brd]
ffffffff81001000 T schedule
"""
BASE = 0xFFFFFFFFC0000000


def test_a_function_ends_where_the_next_one_of_its_module_begins() -> None:
    symbols = ModuleSymbols(LIST)
    assert symbols.function(BASE + 0x801010) == ("ext4_get_block", "ext4")
    assert symbols.function(BASE + 0x80103F) == ("ext4_get_block", "ext4")
    assert symbols.function(BASE + 0x801040) == ("also_write", "ext4")
    assert symbols.function(BASE + 0x801FFF) == ("ext4_write", "ext4")
    assert symbols.function(BASE + 0x802000) is None  # behind the page of the module's last function
    assert symbols.function(BASE + 0x80100F) is None
    assert symbols.function(0xFFFFFFFF81001000) is None
    assert ModuleSymbols().function(BASE) is None
    assert [symbols.is_entry(BASE + at) for at in (0x801010, 0x801011, 0x801080)] == [True, False, False]


MAP = "ffffffff81000000 T release\nffffffff81001000 T _etext\n"


def test_functions_of_modules_and_what_is_left_add_up_to_the_kernel() -> None:
    def line(run: int, *blocks: tuple[int, int]) -> str:
        some = [[BASE + at, 4, 3, executions] for at, executions in blocks]
        return json.dumps(
            {"run": run, "user": 0, "kernel": 0, "blocks": [[0xFFFFFFFF81000000, 4, 5, 2], *some]}
        )

    found = FunctionCounts()
    table = SymbolTable(MAP)
    assert not found.elsewhere
    found.add(RunCounts.model_validate_json(line(1, (0x801040, 10), (0x801050, 20), (0x700000, 2))), table)
    found.add(RunCounts.model_validate_json(line(2, (0x801040, 30), (0x900000, 4))), table)
    assert found.elsewhere
    for _ in range(2):  # told again, it is the same
        told = found.summarise(None, "", ModuleSymbols(LIST))
        assert told is not None
        assert [(one.name, one.instructions, one.calls, one.spread) for one in told.functions] == [
            ("also_write", 90.0, 20.0, 0.0),
            ("release", 10.0, 2.0, 0.0),
            ("release [brd]", 6.0, 2.0, 12.0),  # not the kernel's own function of that name
            ("[outside of the kernel's own text]", 3.0, 0.0, 6.0),
        ]
    blind = found.summarise(None)
    assert blind is not None
    assert {one.name: one.instructions for one in blind.functions} == {
        "release": 10.0,
        "[outside of the kernel's own text]": 99.0,
    }
