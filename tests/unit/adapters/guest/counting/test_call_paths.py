"""Calls of a kernel are followed by its stacks, and every instruction is on the path that executed it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bisector.adapters.guest.counting.call_paths import CallPaths, FunctionNumbers
from bisector.adapters.guest.counting.counting_plugin import counting_plugin
from bisector.adapters.guest.counting.symbol_table import SymbolTable
from bisector.adapters.system.architectures import X86_64
from bisector.errors import TestbedLost
from bisector.schemas.counted_functions import CallPath
from tests.support.bare_guest import build_kernel, execute_kernel

WORK = "start;work"
SWITCH = "__switch_to_asm;__switch_to"
EXPECTED = {
    "start": (4, 0),
    WORK: (20, 1),
    f"{WORK};leaf": (60, 6),
    f"{WORK};pointed": (40, 2),  # called through a register, and by what jumps for its caller
    f"{WORK};__x86_indirect_thunk_rax": (1, 1),
    f"{WORK};tail": (2, 1),
    f"{WORK};tail;leaf": (10, 1),  # jumped to, and returns for both
    f"{WORK};__switch_to_asm": (2, 1),
    f"{WORK};{SWITCH}": (2, 1),
    "other_task": (2, 0),  # its own tree: nobody called it
    "other_task;other_leaf": (40, 1),
    "other_task;__switch_to_asm": (2, 1),
    f"other_task;{SWITCH}": (2, 1),  # returns to where the first task was
    f"{WORK};outer": (2, 1),
    f"{WORK};outer;middle": (1, 1),
    f"{WORK};outer;middle;inner": (2, 1),  # unwinds to outer's frame
    f"{WORK};outer;landing": (2, 1),
    f"{WORK};outer;landing;leaf": (10, 1),
    f"{WORK};interrupted": (4, 1),
    f"{WORK};interrupted;leaf": (10, 1),
    "asm_sysvec_apic_timer_interrupt": (3, 1),
    "asm_sysvec_apic_timer_interrupt;served": (30, 1),
    "asm_exc_page_fault": (2, 1),  # interrupts the interrupt
    "asm_exc_page_fault;served": (30, 1),
    f"{WORK};leaver": (2, 1),
    f"{WORK};leaver;thrower": (2, 1),  # returns to leaver's caller
    f"{WORK};looper": (18, 1),
    f"{WORK};low": (4, 1),
    f"{WORK};low;leaf": (10, 1),  # 9,000 bytes below
}


def tree(paths: tuple[CallPath, ...]) -> dict[str, tuple[float, float]]:
    """Return instructions and calls by path, without those that executed nothing."""
    names: list[str] = []
    for parent, name, _, _ in paths:
        names.append(f"{names[parent - 1]};{name}" if parent else name)
    return {
        path: (instructions, calls)
        for path, (_, _, instructions, calls) in zip(names, paths, strict=True)
        if instructions
    }


def test_each_instruction_is_on_its_path_of_calls(tmp_path: Path) -> None:
    for program in ("gcc", "objcopy", "nm", X86_64.emulator):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}")
    image, symbols = build_kernel(tmp_path)
    numbers = FunctionNumbers(SymbolTable("\n".join(sorted(symbols.splitlines()))))
    (tmp_path / "functions").write_bytes(numbers.records())
    plugin = f"file={counting_plugin(tmp_path / 'cache', X86_64)},profile=on"
    _, run = execute_kernel(image, f"{plugin},functions={tmp_path / 'functions'},follow=5")
    paths = CallPaths()
    paths.add(run["paths"], numbers.names)
    found = {path: (one[0], one[1]) for path, one in tree(tuple(paths.summarise())).items()}
    calls_of_none = ("start", "other_task")
    assert {
        path: (count, 0 if path in calls_of_none else calls) for path, (count, calls) in found.items()
    } == EXPECTED
    assert run["kernel"] == sum(count for count, _ in EXPECTED.values())
    _, run = execute_kernel(image, f"{plugin},functions={tmp_path / 'functions'},follow=4")
    assert "paths" not in run


MODEL = (
    ",predictor=12:8,L1d=128:1:64,L1i=128:1:64,L2=256:1:64,LL=8192:4:64,dTLB=8192:1:4096,iTLB=8192:1:4096,"
    "sTLB=16384:2:4096"
)


def test_what_blocks_missed_adds_up_to_what_the_run_missed(tmp_path: Path) -> None:
    for program in ("gcc", "objcopy", "nm", X86_64.emulator):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}")
    image, _ = build_kernel(tmp_path)
    _, run = execute_kernel(image, f"file={counting_plugin(tmp_path / 'cache', X86_64)},profile=on{MODEL}")
    names = [f"{level}_misses" for level in ("L1i", "L1d", "L2", "LL", "iTLB", "dTLB", "sTLB", "branch")]
    sums = [sum(block[4 + column] for block in run["blocks"]) for column in range(8)]
    assert dict(zip(names, sums, strict=True)) == {name: run[name] for name in names}
    assert all(sums), "a level that nothing misses shows nothing"


def test_runs_add_up_and_small_paths_are_parts_of_their_callers() -> None:
    names = ["[elsewhere]", "[more]", "[deeper]", "a", "b", "c"]
    paths = CallPaths()
    paths.add([(0, 3, 10**6, 1), (1, 4, 100, 2), (2, 5, 3, 4)], names)
    paths.add([(0, 4, 50, 1), (0, 3, 10**6, 1), (2, 5, 1, 1), (2, 4, 300, 6)], names)
    paths.add([], names)  # a run that was not followed
    assert tuple(paths.summarise()) == (
        (0, "a", 10**6 + 0.5, 1),
        (1, "b", 201.5, 4),  # with the c that it calls
        (0, "b", 25, 0.5),
    )


@pytest.mark.parametrize("path", [(1, 3, 1, 1), (7, 3, 1, 1), (0, 6, 1, 1)])
def test_what_is_no_path_is_the_testbeds_failure(path: tuple[int, ...]) -> None:
    with pytest.raises(TestbedLost, match="cannot be read"):
        CallPaths().add([path], ["", "", "", "a", "b", "c"])
