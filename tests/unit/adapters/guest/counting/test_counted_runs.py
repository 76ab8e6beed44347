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
from bisector.adapters.system.architectures import X86_64
from bisector.errors import TestbedLost
from bisector.ports import Counting, Kernel

KERNEL = Kernel("a" * 40, "r", "b", Path("/nonexistent/image"), Path(), Path(), "6.1", "", 1.0, cached=True)


def boot(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    counting: Counting,
    *lines: str,
    kernel: Kernel = KERNEL,
    warmup: int = 0,
) -> CountedRuns:
    monkeypatch.setattr(counted_runs, "counting_plugin", lambda cache, machine: cache / "p.so")
    found = CountedRuns(counting, kernel, folder, X86_64, folder, warmup)
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
        line(1, f"[{helper},1000,1000]"),  # the warm-up
        line(2, f"[{helper},5,10]", f"[{helper + 5},5,10]", f"[{read},2,50]"),
        line(3, f"[{helper},6,50]", f"[{module},7,1]"),
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
