"""The counts of a boot: the metrics that were asked for, run by run."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.guest.counting import counted_runs
from bisector.adapters.guest.counting.counted_runs import CountedRuns
from bisector.adapters.system.architectures import X86_64
from bisector.errors import TestbedLost
from bisector.ports import Counting


def boot(monkeypatch: pytest.MonkeyPatch, folder: Path, counting: Counting, *lines: str) -> CountedRuns:
    monkeypatch.setattr(counted_runs, "counting_plugin", lambda cache, machine: cache / "p.so")
    found = CountedRuns(counting, folder, X86_64, folder)
    place = found.argument.partition("out=")[2].partition(",")[0]
    Path(place).write_text("\n".join(['{"counters":1,"target":"x86_64"}', *lines, ""]))
    return found


def test_each_run_has_what_was_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = Counting(("instructions", "kernel-instructions"))
    runs = boot(monkeypatch, tmp_path, asked, *(f'{{"run":{n},"user":1,"kernel":{n}}}' for n in (1, 2, 3)))
    assert runs.take() == {"instructions": 2.0, "kernel-instructions": 1.0}
    runs.skip()
    assert runs.take() == {"instructions": 4.0, "kernel-instructions": 3.0}


def test_a_metric_that_was_not_counted_is_the_testbeds_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs = boot(monkeypatch, tmp_path, Counting(("loads",)), '{"run":1,"user":1,"kernel":1}')
    with pytest.raises(TestbedLost, match="did not count 'loads'"):
        runs.take()
