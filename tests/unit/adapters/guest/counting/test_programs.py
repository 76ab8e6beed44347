"""User code is a program's where the program's file has that very code; functions and what is left add up."""

from __future__ import annotations

import json
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

from bisector.adapters.guest.counting.count_file import RunCounts
from bisector.adapters.guest.counting.counting_plugin import counting_plugin
from bisector.adapters.guest.counting.function_counts import FunctionCounts
from bisector.adapters.guest.counting.programs import Programs, programs_in
from bisector.adapters.guest.counting.symbol_table import SymbolTable
from bisector.adapters.system.architectures import X86_64
from bisector.schemas.counted_functions import CountedFunctionsFile
from bisector.schemas.kernel.cpu_model import cpu_model
from tests.support.user_program.small_elf import FUNCTION, LABEL, LOCAL_LABEL, elf

BASE = 0x401000
START, OURS, THEIRS = b"\x01" * 16, b"\x02" * 16, b"\x03" * 16
SYMBOLS = [
    ("_start", BASE, 0, LABEL),
    ("inside", BASE + 4, 0, LOCAL_LABEL),
    ("__write", BASE + 16, 8, FUNCTION),
    ("write", BASE + 16, 8, FUNCTION),
    ("helper.isra.0", BASE + 24, 8, FUNCTION),
]


def block(code: bytes, offset: int, size: int) -> tuple[int, int, int]:
    return BASE + offset, size, zlib.crc32(code[offset : offset + size])


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ours").write_bytes(elf(BASE, START + OURS, SYMBOLS))
    (tmp_path / "copy").write_bytes(elf(BASE, START + OURS, SYMBOLS))
    (tmp_path / "theirs").write_bytes(elf(BASE, START + THEIRS))
    (tmp_path / "moving").write_bytes(elf(BASE, START + b"\x04" * 16, SYMBOLS, kind=3))
    (tmp_path / "short").write_bytes(elf(BASE, START + OURS, SYMBOLS)[:100])
    (tmp_path / "script").write_text("#!/bin/sh\n")
    return programs_in(tmp_path)


def test_a_block_is_of_the_program_that_has_its_code(programs: Programs) -> None:
    found, ours, theirs = programs.in_run(), START + OURS, START + THEIRS
    assert found.place(*block(ours, 16, 4)) == ("bin/ours:write", True)
    assert found.place(*block(ours, 18, 4)) == ("bin/ours:write", False)
    assert found.place(*block(ours, 24, 8)) == ("bin/ours:helper", True)
    assert found.place(*block(theirs, 18, 4)) == ("theirs:[no symbol]", False)
    assert found.place(*block(ours, 12, 8)) == ("bin/ours:_start", False)


def test_what_several_or_none_have_is_nobodys(programs: Programs) -> None:
    found, both = programs.in_run(), START + OURS
    assert found.place(*block(both, 0, 16)) == ("", False)
    assert found.place(*block(START + b"\x04" * 16, 16, 8)) == ("", False)  # nothing says where it lies
    assert found.place(BASE + 24, 4096, zlib.crc32(OURS[8:])) == ("", False)
    assert found.place(0x7FFF_0000_0000, 4, 1) == ("", False)


def counted(programs: Programs, *lines: dict[str, object], model: bool = False) -> CountedFunctionsFile:
    found = FunctionCounts(programs)
    for line in lines:
        found.add(RunCounts.model_validate_json(json.dumps(line)), SymbolTable(""))
    summary = found.summarise(cpu_model("") if model else None)
    assert summary is not None
    return summary


def test_functions_and_what_is_left_add_up_to_all_user_code(programs: Programs) -> None:
    ours = START + OURS

    def at(offset: int, size: int, executions: int) -> list[int]:
        address, size, checksum = block(ours, offset, size)
        return [address, size, 3, executions, checksum]

    found = counted(
        programs,
        {"run": 1, "user": 400, "kernel": 0, "programs": [at(16, 4, 10), at(18, 4, 20), at(0, 16, 7)]},
        {"run": 2, "user": 500, "kernel": 0, "programs": [at(16, 4, 30)]},
    )
    assert [(one.name, one.instructions, one.calls, one.spread) for one in found.programs] == [
        ("[other user code]", 360.0, 0, 100.0),  # of no block, and of one that two programs have
        ("bin/ours:write", 90.0, 20.0, 0.0),
    ]
    assert found.user == 450.0
    alone = counted(Programs(), {"run": 1, "user": 7, "kernel": 0, "programs": [at(16, 4, 2)]})
    assert [(one.name, one.instructions) for one in alone.programs] == [("[user programs]", 7)]


def test_programs_have_their_modelled_misses_and_cycles(programs: Programs) -> None:
    address, size, checksum = block(START + OURS, 16, 4)
    missed = [1, 2, 3, 4, 5, 6, 7, 8]
    line = {"run": 1, "user": 9, "kernel": 0, "programs": [[address, size, 3, 3, checksum, *missed]]}
    (ours, rest) = counted(programs, line, model=True).programs
    assert ours.misses == (1, 2, 4, 8, 3, 5, 6, 7, cpu_model("").cycles.of(9, missed))
    assert (rest.instructions, sum(rest.misses)) == (0, 0)


LEAVES, TURNS = 7, 10
SOURCE = Path(__file__).parents[4] / "support" / "user_program" / "two_loops.S"


def test_a_programs_functions_execute_what_can_be_counted_by_hand(tmp_path: Path) -> None:
    for program in ("gcc", "qemu-x86_64", X86_64.emulator):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}")
    folder = tmp_path / "payload"
    folder.mkdir()
    for own, turns in (("mine", TURNS), ("yours", TURNS + 1)):
        defined = [f"-DOWN={own}", f"-DLEAVES={LEAVES}", f"-DTURNS={turns}"]
        words = ["-nostdlib", "-static", "-no-pie", "-Wl,-N", *defined]
        subprocess.run(["gcc", *words, SOURCE, "-o", folder / own], check=True)
    out = tmp_path / "out.jsonl"
    out.write_text("")
    plugin = counting_plugin(tmp_path / "cache", X86_64)
    option = f"file={plugin},out={out},virtual=on,profile=on"
    subprocess.run(["qemu-x86_64", "-plugin", option, folder / "mine"], check=True, timeout=60)
    _, line = out.read_text().splitlines()
    found = counted(programs_in(folder), json.loads(line))
    # 'yours' has the same code at the same addresses, but for one number of turns.
    names = {one.name: (one.instructions, one.calls) for one in found.programs}
    assert names.keys() == {"mine:mine", "[other user code]"}
    assert names["mine:mine"] == (3, 1)
    assert sum(one.instructions for one in found.programs) == found.user
    (folder / "yours").unlink()
    found = counted(programs_in(folder), json.loads(line))
    names = {one.name: (one.instructions, one.calls) for one in found.programs}
    assert names["mine:leaf"] == (3 * LEAVES, LEAVES)
    assert names["[other user code]"] == (3, 0)  # what the program has written itself
    assert names["mine:mine"] == (1 + 2 * TURNS + 1, 1)
    assert sum(one.instructions for one in found.programs) == found.user


MOVING = SOURCE.with_name("long_blocks.S")
CALLS = {"first": 5, "second": 6, "third": 7}
LINKED = {"static-pie": ("-static-pie", "-nostdlib", "-DENTRY=_start"), "pie": ("-pie", "-DENTRY=main")}


@pytest.mark.parametrize("way", LINKED)
def test_functions_of_a_program_that_lies_anywhere_are_told(tmp_path: Path, way: str) -> None:
    for program in ("gcc", "qemu-x86_64", X86_64.emulator):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}")
    folder = tmp_path / "payload"
    folder.mkdir()
    turns = [f"-D{name.upper()}={calls}" for name, calls in CALLS.items()]
    for own, tag in (("mine", 16), ("yours", 32)):
        words = [*LINKED[way], *turns, f"-DTAG={tag}"]
        subprocess.run(["gcc", *words, MOVING, "-o", folder / own], check=True)
    out = tmp_path / "out.jsonl"
    out.write_text("")
    option = f"file={counting_plugin(tmp_path / 'cache', X86_64)},out={out},virtual=on,profile=on"
    subprocess.run(["qemu-x86_64", "-plugin", option, folder / "mine"], check=True, timeout=60)
    line = json.loads(out.read_text().splitlines()[1])
    assert min(block[0] for block in line["programs"]) > 1 << 32  # moved
    # Another process with the same program, elsewhere.
    again = [[block[0] + (5 << 32), *block[1:]] for block in line["programs"]]
    both = {**line, "user": 2 * line["user"], "programs": [*line["programs"], *again]}
    for counts, processes in ((line, 1), (both, 2)):
        found = counted(programs_in(folder), counts)
        told = {one.name: (one.instructions, one.calls) for one in found.programs}
        for name, calls in CALLS.items():
            assert told[f"mine:{name}"] == (9 * calls * processes, calls * processes)
        assert not any(name.startswith("yours") for name in told)
        assert sum(one.instructions for one in found.programs) == found.user
        assert told["[other user code]"][0] == 0
    (folder / "mine").unlink()
    assert [one.name for one in counted(programs_in(folder), line).programs] == ["[user programs]"]
