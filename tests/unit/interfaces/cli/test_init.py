"""`perfbisect init`: what it asks, what it refuses, what it writes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from bisector.app.machines import check_machines
from bisector.interfaces.cli import run
from bisector.model.machines.lab_findings import LabFinding, MachineFindings
from bisector.schemas.settings import Settings
from tests.support.small_git import LINUX, SmallGit


@pytest.fixture
def answers(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> list[MachineFindings]:
    """What machines answer."""
    found = [
        MachineFindings("testbed guest", (LabFinding("this machine", "ok", "it has what guests takes"),))
    ]
    monkeypatch.setattr(check_machines, "check_machines", lambda wiring, progress: found)
    return found


def on_terminal(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    typed = io.StringIO("".join(f"{line}\n" for line in lines))
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", typed)


def test_without_a_terminal_the_options_are_named(
    answers: list[MachineFindings],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert run(["init", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    for option in (
        "--yes",
        "--repo",
        "--testbed",
        "--host",
        "--boot",
        "--key",
        "--builder",
        "--state-dir",
        "--cache-dir",
    ):
        assert option in told
    assert not (tmp_path / "lab.yml").exists()


def test_ctrl_c_at_a_question_is_told_on_a_line_of_its_own(
    answers: list[MachineFindings], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def press() -> str:
        raise KeyboardInterrupt

    on_terminal(monkeypatch)
    monkeypatch.setattr(sys.stdin, "readline", press)
    assert run(["init"]) == 130
    question, said = capsys.readouterr().err.splitlines()
    assert question.endswith(":") and said == "error: interrupted"


def test_answers_are_written_and_tried_and_wrong_ones_asked_for_again(
    answers: list[MachineFindings],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    small = SmallGit(tmp_path / "linux")
    small.make(f"a | {' '.join(LINUX)}")
    key = tmp_path / "key"
    key.touch()
    on_terminal(
        monkeypatch,
        str(tmp_path),
        str(small.path),
        "guest",
        "ssh",
        "a b c@",
        "root@box1 box2",
        "systemd-boot",
        "",
        "/nowhere/key",
        str(key),
        "",
        "",
    )
    assert run(["init", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert f"Error: {tmp_path}" in shown.err
    assert "unknown value 'guest'" in shown.err and "'c@' is not the address" in shown.err
    assert shown.out.splitlines()[-1].startswith("testbed guest  this machine  ok")
    assert f'repo = "{small.path}"' in (tmp_path / "perfbisect.toml").read_text(encoding="utf-8")
    assert 'lab = "lab.yml"' in (tmp_path / "perfbisect.toml").read_text(encoding="utf-8")
    lab = (tmp_path / "lab.yml").read_text(encoding="utf-8")
    assert "box1" in lab and "box2" in lab and "perfbisect_boot_method: systemd-boot" in lab
    assert "/nowhere/key: no such file" in shown.err
    assert lab.count(f"ansible_ssh_private_key_file: {key}") == 2


def test_files_that_are_there_are_replaced_only_after_a_yes(
    answers: list[MachineFindings],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    mine = tmp_path / "perfbisect.toml"
    mine.write_text('workload = "pipe-test"\n', encoding="utf-8")
    assert run(["init", str(tmp_path), "--yes"]) == 1
    assert "there already" in capsys.readouterr().err
    on_terminal(monkeypatch, *[""] * 5, "n")
    assert run(["init", str(tmp_path)]) == 1
    assert mine.read_text(encoding="utf-8") == 'workload = "pipe-test"\n'
    assert not (tmp_path / "lab.yml").exists()
    on_terminal(monkeypatch, *[""] * 5, "y")
    assert run(["init", str(tmp_path)]) == 0
    assert "lab.yml" in mine.read_text(encoding="utf-8")
    assert run(["init", str(tmp_path), "--yes", "--overwrite"]) == 0


def test_a_dry_run_prints_the_files_and_writes_none(
    answers: list[MachineFindings], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(["init", str(tmp_path), "--yes", "--dry-run", "--testbed", "ssh", "--host", "kim@box1:2222"]) == 0
    )
    shown = capsys.readouterr().out
    assert f"--- {tmp_path}/lab.yml" in shown and "ansible_port: 2222" in shown
    assert run(["init", str(tmp_path), "--yes", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["written"] is False
    assert list(tmp_path.iterdir()) == [] or not (tmp_path / "lab.yml").exists()


@pytest.mark.parametrize("there", [True, False])
def test_a_machine_is_opened_by_the_key_that_openssh_takes(
    answers: list[MachineFindings],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    there: bool,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    usual = tmp_path / ".ssh" / "id_rsa"
    if there:
        usual.parent.mkdir()
        usual.touch()
    assert run(["init", str(tmp_path), "--yes", "--dry-run", "--testbed", "ssh", "--host", "box1"]) == 0
    assert (f"ansible_ssh_private_key_file: {usual}" in capsys.readouterr().out) == there


def test_a_machine_that_does_not_answer_is_told_after_the_files_are_written(
    answers: list[MachineFindings], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers[:] = [MachineFindings("testbed box1", (LabFinding("ssh", "wrong", "no route", "plug it in"),))]
    assert run(["init", str(tmp_path), "--yes", "--testbed", "ssh", "--host", "box1"]) == 3
    told = capsys.readouterr().out.splitlines()[-1]
    assert told == "testbed box1  ssh    wrong   no route; cure: plug it in"
    assert (tmp_path / "lab.yml").exists()


def test_a_folder_that_is_not_there_is_refused_before_anything_is_asked(
    answers: list[MachineFindings],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    on_terminal(monkeypatch)
    assert run(["init", str(tmp_path / "gone")]) == 1
    assert capsys.readouterr().err == (
        f"error: {tmp_path}/gone: no such folder\ncure: name a folder that exists\n"
    )


def test_folders_are_written_where_they_are_not_the_usual_ones(
    answers: list[MachineFindings],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    usual = Settings()
    monkeypatch.chdir(tmp_path)
    assert run(["init", "--yes", "--dry-run", "--cache-dir", "cache"]) == 0
    shown = capsys.readouterr().out
    assert f'cache_dir = "{tmp_path}/cache"' in shown and "state_dir" not in shown
    assert run(["init", "--yes", "--dry-run", "--state-dir", "s", "--cache-dir", str(usual.cache_dir)]) == 0
    shown = capsys.readouterr().out
    assert f'state_dir = "{tmp_path}/s"' in shown and "cache_dir" not in shown


def test_machines_may_have_commas_between_them(
    answers: list[MachineFindings], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--yes", "--dry-run", "--testbed", "ssh", "--host", "box1, kim@box2"]
    assert run(["init", str(tmp_path), *options]) == 0
    shown = capsys.readouterr().out
    assert "box1:" in shown and "box2:" in shown and "ansible_user: kim" in shown


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--testbed", "ssh"], "needs a machine"),
        (["--testbed", "ssh", "--host", " , "], "no machine is named"),
        (["--testbed", "local", "--host", "box1"], "--host is for machines"),
        (["--testbed", "ssh", "--host", "box1", "--boot", "bios"], "--boot: unknown value 'bios'"),
        (["--testbed", "ssh", "--host", "box1", "--host", "root@box1"], "named twice"),
        (["--key", "/dev/null"], "--key is for machines"),
        (["--builder", "kim@big", "--key", "/nowhere"], "--key: /nowhere: no such file"),
        (["--builder", "a b"], "--builder: 'a b' is not the address"),
        (["--repo", "/nowhere"], "--repo: "),
    ],
)
def test_wrong_answers_are_refused(
    answers: list[MachineFindings],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    says: str,
) -> None:
    assert run(["init", str(tmp_path), "--yes", *options]) == 1
    assert says in capsys.readouterr().err
    assert not (tmp_path / "lab.yml").exists()
