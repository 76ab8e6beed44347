"""What is sent to a testbed: the archive, the settings for the agent, and the command that serves runs."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.agent import payload
from bisector.errors import RequestError
from bisector.ports import Job, MetricSpec
from bisector.schemas.workload.workload import Workload, load_workload


@pytest.fixture
def job(tmp_path: Path) -> Job:
    folder = tmp_path / "payload"
    (folder / "data").mkdir(parents=True)
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "data" / "input").write_text("1\n")
    return Job("w", folder, ("run.sh", "7"), (MetricSpec("real", "s"),))


def test_an_archive_holds_payload_and_settings_and_belongs_to_root(job: Job, tmp_path: Path) -> None:
    job = replace(job, environment={"aslr": "0"})
    payload.write_archive(job, tmp_path / "a.tar")
    with tarfile.open(tmp_path / "a.tar") as archive:
        found = {info.name: info for info in archive}
        settings = archive.extractfile(payload.SETTINGS)
        assert settings is not None
        assert settings.read() == b"aslr /proc/sys/kernel/randomize_va_space 0\n"
    assert set(found) == {"data", "data/input", "run.sh", payload.SETTINGS, payload.MONITORS}
    assert found["run.sh"].mode & 0o111
    assert {(info.uid, info.gid, info.mtime) for info in found.values()} == {(0, 0, 0)}


def test_settings_say_where_each_is_written() -> None:
    text = payload.settings_text({"turbo": "0", "sysctl.vm.swappiness": "10", "nice": "-5"})
    assert text.splitlines() == [
        "sysctl.vm.swappiness /proc/sys/vm/swappiness 10",
        "turbo /sys/devices/system/cpu/cpufreq/boost 0",
        "no_turbo /sys/devices/system/cpu/intel_pstate/no_turbo 1",
    ]


@pytest.mark.parametrize(("environment", "sent"), [({"swap": "0"}, True), ({"aslr": "0"}, False)])
def test_the_script_goes_along_only_for_settings_that_are_no_file(
    job: Job, environment: dict[str, str], sent: bool
) -> None:
    assert (payload.HOST in payload.agent_files(replace(job, environment=environment))) is sent


def test_the_settings_of_a_workload_win_over_those_of_the_lab(job: Job) -> None:
    job = payload.with_lab_settings(replace(job, environment={"aslr": "0"}), {"aslr": "2", "swap": "0"})
    assert job.environment == {"aslr": "0", "swap": "0"}


def test_a_program_that_is_written_with_its_folder_gets_no_second_one(job: Job) -> None:
    assert payload.agent_command(replace(job, run=("./run.sh", "7")))[-2:] == ["./run.sh", "7"]


def test_the_agent_is_told_what_it_does_itself(job: Job) -> None:
    job = replace(job, environment={"cpus": "0", "env.WORD": "hello", "aslr": "0"}, cleanup=True)
    assert payload.agent_command(job, undo=True) == [
        *(f"./{payload.AGENT}", "serve", "--undo", "yes", "--cpus", "0", "--env", "WORD=hello"),
        *("--cleanup", payload.PLAN, "--", "./run.sh", "7"),
    ]


MANIFEST = """name: mine
description: A made one.
metrics:
  - {name: real, unit: s, better: lower, threshold: 5%, decides: true}
run: [made]
build:
  - [sh, -c, "echo '#!/bin/sh' > made; chmod +x made"]
  - [sh, -c, "test -x made && exit CODE"]
files: [made]
"""


def a_workload(folder: Path, code: int) -> Workload:
    folder.mkdir()
    (folder / "workload.yaml").write_text(MANIFEST.replace("CODE", str(code)))
    return load_workload(str(folder))


def test_a_workload_is_built_before_its_files_are_taken(tmp_path: Path) -> None:
    made = payload.workload_job(a_workload(tmp_path / "mine", 0), tmp_path / "out").payload / "made"
    assert made.read_text() == "#!/bin/sh\n"
    assert not (tmp_path / "mine" / "made").exists(), "the workload's own folder is left alone"


def test_a_step_that_fails_is_a_wrong_request_with_its_output(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"'mine' does not build \('sh' ended with code 3\)") as caught:
        payload.workload_job(a_workload(tmp_path / "mine", 3), tmp_path / "out")
    assert "test -x made" in caught.value.details
    assert caught.value.cure.startswith("mend 'build' in")


@pytest.mark.parametrize(("more", "counts"), [("warmup: 1\n", True), ("", False)])
def test_no_function_is_counted_in_a_run_that_sets_up(tmp_path: Path, more: str, counts: bool) -> None:
    folder = a_workload(tmp_path / "mine", 0).folder
    manifest = folder / "workload.yaml"
    manifest.write_text(manifest.read_text() + "setup: [[made]]\n" + more)
    job = payload.workload_job(load_workload(str(folder)), tmp_path / "out", explain=True)
    assert (job.counting is not None) == counts
