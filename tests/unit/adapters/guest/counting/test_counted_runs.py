"""The counts of a boot: the metrics that were asked for, run by run."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.guest.counting import counted_runs
from bisector.adapters.guest.counting.counted_runs import CountedRuns
from bisector.adapters.parsers.profiles import read as read_profile
from bisector.adapters.system.architectures import ARM64, X86_64
from bisector.errors import InfrastructureError, TestbedLost, WorkloadFailed
from bisector.linux.kernel_entries import FAULTS, INTERRUPTS, SWITCHES
from bisector.ports import Counting, Kernel
from bisector.schemas.kernel.cpu_model import cpu_model

KERNEL = Kernel("a" * 40, "r", "b", Path("/nonexistent/image"), Path(), Path(), "6.1", "", 1.0, cached=True)


def boot(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    counting: Counting,
    *lines: str,
    kernel: Kernel = KERNEL,
    warmup: int = 0,
    cmdline: str = "",
) -> CountedRuns:
    monkeypatch.setattr(counted_runs, "counting_plugin", lambda cache, machine: cache / "p.so")
    found = CountedRuns(counting, kernel, folder, X86_64, folder, folder, warmup, cmdline)
    place = found.argument.partition("out=")[2].partition(",")[0]
    Path(place).write_text("\n".join(['{"counters":1,"target":"x86_64"}', *lines, ""]))
    return found


def test_each_run_has_what_was_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = Counting(("instructions", "kernel-instructions"))
    runs = boot(monkeypatch, tmp_path, asked, *(f'{{"run":{n},"user":1,"kernel":{n}}}' for n in (1, 2, 3)))
    assert runs.take(1, "") == {"instructions": 2.0, "kernel-instructions": 1.0}
    assert runs.take(3, "") == {"instructions": 4.0, "kernel-instructions": 3.0}


def test_a_metric_that_was_not_counted_is_the_testbeds_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs = boot(monkeypatch, tmp_path, Counting(("loads",)), '{"run":1,"user":1,"kernel":1}')
    with pytest.raises(TestbedLost, match="did not count 'loads'"):
        runs.take(1, "")


MAP = """\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81001000 t helper.isra.0
ffffffff81002000 T __x64_sys_read
ffffffff81003000 T _etext
ffffffff82000000 D data
"""


def test_the_profile_has_the_mean_of_samples_and_where_a_block_lies(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def line(run: int, *blocks: str) -> str:
        return f'{{"run":{run},"user":{10 * run},"kernel":0,"blocks":[{",".join(blocks)}]}}'

    helper, read, module = 0xFFFFFFFF81001010, 0xFFFFFFFF81002FFF, 0xFFFFFFFFC0000000
    lines = [
        line(1, f"[{helper},9,1000,1000]"),  # the warm-up
        line(2, f"[{helper},9,5,10]", f"[{helper + 5},9,5,10]", f"[{read},9,2,50]"),
        line(3, f"[{helper},9,6,50]", f"[{module},9,7,1]"),
    ]
    kernel = replace(KERNEL, image=tmp_path / "image")
    (tmp_path / "System.map.gz").write_bytes(gzip.compress(MAP.encode()))
    counting = Counting(("instructions",), profile=True)
    runs = boot(monkeypatch, tmp_path, counting, *lines, kernel=kernel, warmup=1)
    assert runs.profile("").absent == ("no run was counted",)
    for number in (1, 2, 3):
        runs.take(number, "")
    result = runs.profile("")
    assert {one.name: one.value for one in result.seen} == {
        "[user programs]": 25.0,
        "helper": 200.0,
        "__x64_sys_read": 50.0,
        "[outside of the kernel's own text]": 3.5,
    }
    profile = read_profile(result.folder)
    assert profile.exact
    assert profile.total == 278.5
    kept = json.loads((Path(result.folder) / "functions.json").read_text())
    assert [(one["name"], one["spread"]) for one in kept["functions"]][:2] == [
        ("helper", 200.0),
        ("__x64_sys_read", 100.0),
    ]
    assert kept["user_spread"] == 10.0


def test_a_kernel_whose_addresses_say_nothing_has_no_profile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    counting = Counting(profile=True)
    (absent,) = boot(monkeypatch, tmp_path, counting).profile("").absent
    assert "kept no symbols" in absent
    moving = replace(KERNEL, options={"RANDOMIZE_BASE": "y"})
    (absent,) = boot(monkeypatch, tmp_path, counting, kernel=moving).profile("quiet").absent
    assert "CONFIG_RANDOMIZE_BASE" in absent
    (absent,) = boot(monkeypatch, tmp_path, counting, kernel=moving).profile("quiet nokaslr").absent
    assert "kept no symbols" in absent


def test_why_symbols_are_missing_is_true_of_the_kernel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    counting = Counting(profile=True)
    listed = replace(KERNEL, sha="6.1.172-1@0123456789abcdef", image=tmp_path / "image")
    (absent,) = boot(monkeypatch, tmp_path, counting, kernel=listed).profile("").absent
    assert "6.1.172-1 came without its symbols" in absent and "earlier version" not in absent
    (tmp_path / "System.map.gz").write_bytes(b"damaged")
    (absent,) = boot(monkeypatch, tmp_path, counting, kernel=listed).profile("").absent
    assert "symbols cannot be read" in absent and "earlier version" not in absent


def test_what_one_function_executes_is_a_metric_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    helper, read, cold = 0xFFFFFFFF81001010, 0xFFFFFFFF81002FFF, 0xFFFFFFFF81002800
    text = MAP.replace(
        "ffffffff81003000", "ffffffff81002800 t helper.cold\nffffffff81002900 T other\nffffffff81003000"
    )
    blocks = f"[{helper},9,5,10],[{helper + 5},9,7,10],[{cold},3,2,4],[{read},9,2,50]"
    kernel = replace(KERNEL, image=tmp_path / "image")
    (tmp_path / "System.map.gz").write_bytes(gzip.compress(text.encode()))
    names = "instructions.helper", "instructions.__x64_sys_read", "instructions.inlined"
    line = f'{{"run":1,"user":1,"kernel":1,"blocks":[{blocks}]}}'
    runs = boot(monkeypatch, tmp_path, Counting(names), line, kernel=kernel)
    assert "profile=on" in runs.argument
    assert runs.take(1, "") == {"instructions.helper": 128.0, "instructions.__x64_sys_read": 0.0}
    runs = boot(monkeypatch, tmp_path, Counting(names, names[2:]), line, kernel=kernel)
    with pytest.raises(
        WorkloadFailed, match=r"'instructions.inlined'.*this kernel has no function 'inlined'"
    ) as failed:
        runs.take(1, "")
    assert "inline" in failed.value.cure


ENTRIES = """\
ffffffff81000000 T asm_exc_page_fault
ffffffff81001000 T asm_sysvec_apic_timer_interrupt
ffffffff81002000 T asm_common_interrupt
ffffffff81003000 T __switch_to
ffffffff81004000 T schedule
ffffffff81005000 T _etext
"""
EVENTS = (FAULTS, INTERRUPTS, SWITCHES)


def entered(*executions: int) -> str:
    blocks = ",".join(
        f"[{0xFFFFFFFF81000000 + 0x1000 * at},9,3,{times}]" for at, times in enumerate(executions)
    )
    return f'{{"run":1,"user":1,"kernel":1,"blocks":[{blocks},[{0xFFFFFFFF81003008},9,9,90]]}}'


def test_faults_interrupts_and_switches_are_counted_where_they_begin(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kernel = replace(KERNEL, image=tmp_path / "image")
    (tmp_path / "System.map.gz").write_bytes(gzip.compress(ENTRIES.encode()))
    runs = boot(monkeypatch, tmp_path, Counting(EVENTS), entered(5, 7, 2, 40, 11), kernel=kernel)
    assert "profile=on" in runs.argument
    assert runs.take(1, "") == {"page-faults": 5, "interrupts": 9, "context-switches": 40}


def test_events_that_a_kernel_does_not_show_are_left_out_unless_they_are_needed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = Counting(("instructions", *EVENTS))
    runs = boot(monkeypatch, tmp_path, asked, entered(5))
    assert runs.take(1, "") == {"instructions": 2.0}
    needed = replace(asked, needed=("page-faults",))
    runs = boot(monkeypatch, tmp_path, needed, entered(5))
    with pytest.raises(InfrastructureError, match=r"'page-faults' cannot be counted: .*kept no symbols"):
        runs.take(1, "")


def test_a_kernel_that_does_not_show_a_needed_event_fails_the_workload(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kernel = replace(KERNEL, image=tmp_path / "image")
    (tmp_path / "System.map.gz").write_bytes(gzip.compress(MAP.encode()))
    runs = boot(monkeypatch, tmp_path, Counting(EVENTS, EVENTS[:1]), entered(5), kernel=kernel)
    with pytest.raises(WorkloadFailed, match="'page-faults' cannot be counted: no function of this kernel"):
        runs.take(1, "")


def test_the_first_sample_is_followed_on_the_architecture_that_shows_calls(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kernel = replace(KERNEL, image=tmp_path / "image")
    (tmp_path / "System.map.gz").write_bytes(gzip.compress(MAP.encode()))
    counting = Counting(("instructions",), profile=True)
    line = (
        f'{{"run":2,"user":1,"kernel":9,"blocks":[[{0xFFFFFFFF81002000},9,9,1]],'
        '"paths":[[0,5,9,1],[1,4,30,2]]}'
    )
    runs = boot(monkeypatch, tmp_path, counting, line, kernel=kernel, warmup=1)
    assert "follow=2" in runs.argument
    assert (tmp_path / "functions.bin").stat().st_size == 4 * 16
    runs = boot(monkeypatch, tmp_path, counting, line, kernel=kernel)
    runs.take(2, "")
    result = runs.profile("")
    assert ("helper < __x64_sys_read", 30.0) in [(one.name, one.value) for one in result.seen]
    assert [one.name for one in read_profile(result.folder).whole] != []
    moving = replace(kernel, options={"RANDOMIZE_BASE": "y"})
    runs = boot(monkeypatch, tmp_path, counting, line, kernel=moving)
    assert "follow" not in runs.argument, "nobody could tell its functions, and following costs a third"
    runs = boot(monkeypatch, tmp_path, counting, line, kernel=moving, cmdline="quiet nokaslr")
    assert "follow" in runs.argument
    arm = CountedRuns(counting, kernel, tmp_path, ARM64, tmp_path, tmp_path)
    assert "follow" not in arm.argument


def test_a_function_is_called_as_often_as_its_first_block_is_executed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kernel = replace(KERNEL, image=tmp_path / "image")
    (tmp_path / "System.map.gz").write_bytes(gzip.compress(ENTRIES.encode()))
    counting = Counting(("instructions",), profile=True)
    runs = boot(monkeypatch, tmp_path, counting, entered(5, 7, 2, 40, 11), kernel=kernel)
    runs.take(1, "")
    profile = read_profile(runs.profile("").folder)
    assert {symbol.name: calls for symbol, calls in profile.calls.items()}["__switch_to"] == 40


@pytest.mark.parametrize(
    "counting", [Counting(("LL-misses",), profile=True), Counting(profile=True, cpu="nehalem", models=True)]
)
def test_functions_have_their_modelled_misses_wherever_a_model_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, counting: Counting
) -> None:
    kernel = replace(KERNEL, image=tmp_path / "image")
    (tmp_path / "System.map.gz").write_bytes(gzip.compress(MAP.encode()))
    blocks = (
        f"[{0xFFFFFFFF81001000},4,2,9,10,20,300020,300000,7,8,6,40],"
        f"[{0xFFFFFFFF81002000},4,1,9,0,0,2,2,0,0,0,5]"
    )
    line = f'{{"run":1,"user":1,"kernel":9,"LL_misses":3,"branch_misses":1,"blocks":[{blocks}]}}'
    runs = boot(monkeypatch, tmp_path, counting, line, kernel=kernel)
    runs.take(1, "")
    seen = [(one.name, one.value, one.unit) for one in runs.profile("").seen]
    assert ("helper", 300000.0, "modelled misses to memory") in seen
    assert ("[other functions]", 2.0, "modelled misses to memory") in seen
    assert ("__x64_sys_read", 5.0, "modelled mispredicted branches") in seen
    assert ("helper", 10.0, "modelled misses of L1i") in seen
    assert ("helper", 20.0, "modelled misses of L1d") in seen
    assert ("helper", 300020.0, "modelled misses of L2") in seen
    assert ("helper", 7.0, "modelled misses of the iTLB") in seen
    assert ("helper", 8.0, "modelled misses of the dTLB") in seen
    assert ("helper", 6.0, "modelled misses of both TLBs") in seen
    cycles = cpu_model(counting.cpu).cycles.of(18, (10, 20, 300020, 300000, 7, 8, 6, 40))
    assert ("helper", cycles, "modelled cycles") in seen


def test_the_guest_is_asked_for_its_modules_only_where_their_code_was_executed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kernel = replace(KERNEL, image=tmp_path / "image")
    (tmp_path / "System.map.gz").write_bytes(gzip.compress(MAP.encode()))
    own, module = 0xFFFFFFFF81001000, 0xFFFFFFFFC0801004
    asked: list[str] = []

    def listed() -> str:
        asked.append("symbols")
        return "ffffffffc0801000 t ext4_write\t[ext4]\n"

    for places, expected in (((own,), 0), ((own, module), 1)):
        blocks = ",".join(f"[{place},4,1,9]" for place in places)
        line = f'{{"run":1,"user":1,"kernel":9,"blocks":[{blocks}]}}'
        runs = boot(monkeypatch, tmp_path, Counting(profile=True), line, kernel=kernel)
        runs.take(1, "")
        names = {one.name for one in runs.profile("", listed).seen}
        assert len(asked) == expected
    assert {"helper", "ext4_write"} <= names
