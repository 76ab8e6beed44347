"""What the end of a playbook means."""

import json
from pathlib import Path

import pytest

from bisector.adapters.ansible.playbook_events import Events, Played, raise_for_failure
from bisector.errors import InfrastructureError

ROLE = """[ERROR]: the role 'nonsuch' was not found in /roles:/etc/ansible/roles
Origin: /play/books/build.yml:2:11

1 - hosts: all
2   roles: [nonsuch]
"""


@pytest.mark.parametrize(
    ("log", "code", "reason"),
    [
        (ROLE, 1, "the role 'nonsuch' was not found in /roles:/etc/ansible/roles (/play/books/build.yml:2)"),
        ("ERROR! no such role\n", 250, "no such role"),
        ("Origin: /of/a/warning.yml:1:1\n[ERROR]: too late\n", 4, "too late"),
        ("TASK [building]\n", 254, "Ansible was told to end by a signal"),
        ("TASK [building]\n", -15, "Ansible was told to end by a signal"),
        ("TASK [building]\n", 143, "Ansible was told to end by a signal"),
        ("TASK [building]\n", 137, "Ansible was told to end by a signal"),  # as where memory ran out
        ("TASK [building]\n", 130, "Ansible was told to end by a signal"),
        ("", 250, "Ansible gave no reason (exit code 250)"),
        (None, 250, "it left no log: "),
        ("Traceback:\n  File x\nKeyError: 'shell'\n\n", 250, "KeyError: 'shell' (exit code 250)"),
        ("The command was not found: ansible-playbook\n", 127, "The command was not found: ansible-playbook"),
        ("usage: ansible-playbook\nunrecognized arguments: --x\n", 2, "unrecognized arguments: --x (exit"),
    ],
)
def test_a_playbook_that_could_not_be_run_is_broken_infrastructure_with_ansible_s_reason(
    tmp_path: Path, log: str | None, code: int, reason: str
) -> None:
    """Also where somebody emptied the cache folder meanwhile, its log with it."""
    events = Events("build", tmp_path / "build.log", lambda _: None, None)
    events.close()
    if log is None:
        (tmp_path / "build.log").unlink()
    else:
        (tmp_path / "build.log").write_text(log)
    with pytest.raises(InfrastructureError) as raised:
        raise_for_failure(Played("build", (), 1.0, tmp_path / "build.log"), code, events, check=True)
    assert raised.value.message.startswith(f"the playbook 'build' could not be run: {reason}")
    assert ("left no log" if log is None else log) in raised.value.details
    assert str(tmp_path / "build.log") in raised.value.details
    assert ("dmesg" in raised.value.cure) == ("by a signal" in reason)


def event(kind: str, task: str, **data: object) -> str:
    return json.dumps({"event": kind, "stdout": f"{kind} {task}\r\n", "event_data": {"task": task, **data}})


def read(tmp_path: Path, *lines: str) -> tuple[Played, Events, list[str]]:
    progress: list[str] = []
    events = Events("build", tmp_path / "build.log", progress.append, None)
    for line in lines:
        events.read_line(line)
    events.close()
    return Played("build", tuple(events.tasks), 1.0, events.log), events, progress


def test_events_become_tasks_progress_and_a_log(tmp_path: Path) -> None:
    played, events, progress = read(
        tmp_path,
        event("playbook_on_task_start", "compiling"),
        "[WARNING]: not JSON",
        "",
        "[1, 2]",
        event("runner_on_ok", "compiling", host="here", duration=1.5, res={"stdout": "old"}),
        event("runner_on_ok", "compiling", host="here", res={"stdout": "new"}),
        event("runner_on_skipped", "fetching", host="here"),
        event("runner_on_failed", "asking", host="here", ignore_errors=True, res={"rc": 1}),
    )
    assert progress == ["compiling"]
    assert [task.status for task in played.tasks] == ["ok", "ok", "skipped", "ok"]
    assert played.tasks[0].seconds == 1.5
    assert played.failed is None
    assert played.result("compiling") == {"stdout": "new"}
    assert events.other_output == ["[WARNING]: not JSON", "[1, 2]"]
    assert "runner_on_ok compiling" in played.log.read_text()
    with pytest.raises(InfrastructureError, match="ran no task 'fetching'") as error:
        played.result("fetching")
    assert "it ran: asking, compiling" in error.value.details
    raise_for_failure(played, 0, events, check=True)


def test_a_host_that_is_not_reached_wins_over_a_failed_task(tmp_path: Path) -> None:
    away = event("runner_on_unreachable", "asking", host="far", res={"msg": "no route"})
    failed = event("runner_on_failed", "building", host="here", res={"msg": "broken", "stderr": "cc: no"})
    played, events, _ = read(tmp_path, failed, away)
    with pytest.raises(InfrastructureError, match="Ansible cannot reach 'far'") as unreachable:
        raise_for_failure(played, 4, events, check=False)
    assert "no route" in unreachable.value.details
    played, events, _ = read(tmp_path, failed)
    with pytest.raises(InfrastructureError, match="the task 'building' failed on 'here': cc: no") as error:
        raise_for_failure(played, 2, events, check=True)
    assert "broken\ncc: no" in error.value.details
    raise_for_failure(played, 2, events, check=False)  # the caller reads `failed`


@pytest.mark.parametrize(
    ("res", "reason"),
    [
        ({"rc": -9, "msg": "non-zero return code"}, "its command was ended by a signal, which another"),
        ({"rc": 137, "stderr": "cc: no"}, "its command was ended by a signal, which another"),
        ({"rc": 1, "msg": "non-zero return code", "stderr": "a\nno sandbox\n"}, "no sandbox$"),
        ({"msg": "no such file", "module_stderr": " "}, "no such file$"),
        ({}, "it gave no reason$"),
    ],
)
def test_a_failed_task_says_why(tmp_path: Path, res: dict[str, object], reason: str) -> None:
    played, events, _ = read(tmp_path, event("runner_on_failed", "building", host="here", res=res))
    with pytest.raises(InfrastructureError, match=f"the task 'building' failed on 'here': {reason}"):
        raise_for_failure(played, 2, events, check=True)


def test_a_play_without_a_host_is_told(tmp_path: Path) -> None:
    played, events, _ = read(tmp_path, "skipping: no hosts matched")
    with pytest.raises(InfrastructureError, match="had no host to run on") as error:
        raise_for_failure(played, 0, events, check=True)
    assert "no hosts matched" in error.value.details


def test_the_log_can_be_shown_on_a_terminal_whatever_a_host_said(tmp_path: Path) -> None:
    events = Events("build", tmp_path / "build.log", lambda _: None, None)
    events.read_line("\x9b31mnoise")
    events.read_line(json.dumps({"event": "verbose", "stdout": "ok: [bed]\r\n\x1b]0;x\x07 \udc80"}))
    events.read_line("[" * 100_000)
    events.close()
    lines = (tmp_path / "build.log").read_text(encoding="utf-8").splitlines()
    assert lines[:3] == ["\\x9b31mnoise", "ok: [bed]", "\\x1b]0;x\\x07 \\udc80"]


def test_what_ansible_prints_beside_its_events_is_in_the_log(tmp_path: Path) -> None:
    events = Events("build", tmp_path / "build.log", lambda _: None, None)
    events.read_line("[WARNING]: Found \x1b[31mboth\x1b[0m group and host")
    events.close()
    assert events.other_output
    assert (tmp_path / "build.log").read_text() == "[WARNING]: Found \\x1b[31mboth\\x1b[0m group and host\n"
