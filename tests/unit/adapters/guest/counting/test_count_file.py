"""The plugin's file: each run by its number, and nothing that a hostile guest may have caused is believed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bisector.adapters.guest.counting.count_file import CountFile, RunCounts
from bisector.errors import InfrastructureError, TestbedLost
from bisector.schemas.kernel.cpu_model import cpu_model

HEAD = '{"counters":1,"target":"x86_64"}\n'


def line(**more: object) -> str:
    return json.dumps({"run": 1, "user": 10, "kernel": 20, **more}) + "\n"


def append(file: CountFile, text: str) -> None:
    with file.path.open("a") as out:
        out.write(text)


def test_runs_are_known_by_their_numbers_while_the_guest_goes_on(tmp_path: Path) -> None:
    file = CountFile(tmp_path / "counts")
    with pytest.raises(TestbedLost, match="counted nothing in run 1"):
        file.run(1)
    append(file, HEAD + line(run=1, user=10) + line(run=2, user=20) + line(run=3, user=30))
    assert file.run(1).user == 10
    assert file.run(3).user == 30  # run 2 was a monitor's
    append(file, line(run=4, user=40))
    assert file.run(4).user == 40


def test_the_folder_of_a_boot_need_not_be_there(tmp_path: Path) -> None:
    file = CountFile(tmp_path / "boot" / "1" / "counts")
    append(file, HEAD + line(run=1, user=10))
    assert file.run(1).user == 10
    (tmp_path / "taken").write_bytes(b"")
    with pytest.raises(InfrastructureError, match="taken"):
        CountFile(tmp_path / "taken" / "counts")


def test_a_run_that_was_not_counted_is_missed_and_never_replaced_by_another(tmp_path: Path) -> None:
    file = CountFile(tmp_path / "counts")
    append(file, HEAD + line(run=1) + line(run=3))
    with pytest.raises(TestbedLost, match="counted nothing in run 2"):
        file.run(2)


def test_what_was_read_leaves_the_file_so_that_a_boot_may_last(tmp_path: Path) -> None:
    file = CountFile(tmp_path / "counts")
    append(file, HEAD)
    for number in range(1, 40):
        append(file, line(run=number, user=number, blocks=[[1 << 63, 9, 1, 1]] * 100))
        assert file.path.stat().st_size < 10_000
        assert file.run(number).user == number
    append(file, line(run=40) + line(run=41))
    assert file.run(40).run == 40  # what is behind it stays
    assert file.run(41).run == 41
    assert file.path.stat().st_size == 0


@pytest.mark.parametrize(
    "text",
    [
        "[]\n",
        line(user=-1),
        line(user=1 << 64),
        line(user="7"),
        line(user=1.5),
        line(surprise=1),
        line(blocks=[[1, 2, 3]]),
        line(blocks=[list(range(13))]),
        line(paths=[[0, 3, 1]]),
        line(paths=[[0, 3, 1, -1]]),
        line()[:20] + "\n",
        '{"run":1,"user":NaN,"kernel":0}\n',
        "\0" * 100 + "\n",
    ],
)
def test_what_is_no_count_is_the_testbeds_failure(tmp_path: Path, text: str) -> None:
    file = CountFile(tmp_path / "counts")
    append(file, HEAD + text)
    with pytest.raises(TestbedLost, match="cannot be read"):
        file.run(1)


def test_a_file_that_the_plugin_did_not_begin_is_refused(tmp_path: Path) -> None:
    file = CountFile(tmp_path / "counts")
    append(file, line())
    with pytest.raises(TestbedLost, match="cannot be read"):
        file.run(1)


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
