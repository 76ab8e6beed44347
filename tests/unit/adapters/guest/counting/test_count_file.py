"""The plugin's file: runs in order, and nothing that a hostile guest may have caused is believed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bisector.adapters.guest.counting.count_file import CountFile, RunCounts
from bisector.errors import TestbedLost
from bisector.schemas.kernel.cpu_model import cpu_model

HEAD = '{"counters":1,"target":"x86_64"}\n'


def line(**more: object) -> str:
    return json.dumps({"run": 1, "user": 10, "kernel": 20, **more}) + "\n"


def append(file: CountFile, text: str) -> None:
    with file.path.open("a") as out:
        out.write(text)


def test_runs_come_in_order_while_the_guest_goes_on(tmp_path: Path) -> None:
    file = CountFile(tmp_path / "counts")
    append(file, HEAD + line(user=1) + line(user=2))
    assert file.next_run().user == 1
    file.skip()
    with pytest.raises(TestbedLost, match="counted nothing"):
        file.next_run()
    append(file, line(user=3))
    assert file.next_run().user == 3


@pytest.mark.parametrize(
    "text",
    [
        "[]\n",
        line(user=-1),
        line(user=1 << 64),
        line(user="7"),
        line(user=1.5),
        line(surprise=1),
        line(blocks=[[1, 2]]),
        line(blocks=[[1, 2, 3, 4, 5, 6, 7]]),
        line()[:20] + "\n",
        '{"run":1,"user":NaN,"kernel":0}\n',
        "\0" * 100 + "\n",
    ],
)
def test_what_is_no_count_is_the_testbeds_failure(tmp_path: Path, text: str) -> None:
    file = CountFile(tmp_path / "counts")
    append(file, HEAD + text)
    with pytest.raises(TestbedLost, match="cannot be read"):
        file.next_run()


def test_a_file_that_the_plugin_did_not_begin_is_refused(tmp_path: Path) -> None:
    file = CountFile(tmp_path / "counts")
    append(file, line())
    with pytest.raises(TestbedLost, match="cannot be read"):
        file.next_run()


def test_cycles_are_one_an_instruction_and_the_penalties_of_what_missed() -> None:
    cpu = cpu_model("nehalem")
    misses = {"L1i_misses": 3, "L1d_misses": 7, "L2_misses": 6, "LL_misses": 2, "branch_misses": 4}
    tlbs = {"iTLB_misses": 1, "dTLB_misses": 4, "sTLB_misses": 2}
    counts = RunCounts.model_validate({"run": 1, "user": 600, "kernel": 400, **misses, **tlbs})
    values = counts.values(cpu)
    assert values["instructions"] == 1000
    assert values["kernel-instructions"] == 400
    assert values["L1d-misses"] == 7
    assert values["modelled-cycles"] == 1000 + 4 * 10 + 4 * 40 + 2 * 160 + 4 * 17 + 3 * 7 + 2 * 30
    assert "modelled-cycles" not in RunCounts.model_validate({"run": 1, "user": 1, "kernel": 1}).values(cpu)
