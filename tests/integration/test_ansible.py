"""Ansible for real, on this machine and over SSH: results, failures, deadlines, and nothing left behind."""

import os
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.ansible import inventory
from bisector.adapters.ansible.inventory import read_lab
from bisector.adapters.ansible.playbook_events import Played
from bisector.adapters.ansible.runner import Ansible
from bisector.errors import InfrastructureError, Interrupted, RequestError
from bisector.resources import resource
from tests.support.loopback_sshd import Server
from tests.support.servers.free_port import free_port
from tests.support.waiting import until

PLAYBOOK = """\
- hosts: all
  gather_facts: false
  environment:
    PERFBISECT_PLAY: "{{ perfbisect_play }}"
  tasks:
    - name: saying a word
      ansible.builtin.raw: "echo {{ word }}"
    - name: napping
      ansible.builtin.shell: "sleep {{ nap }}; exit {{ code }}"
"""

SAY = """\
- hosts: all
  gather_facts: false
  tasks:
    - name: saying all
      ansible.builtin.command:
        argv: [printf, '%s\\n%s\\n%s\\n', "{{ word }}", "{{ list[0] }}", "{{ map.a }}"]
"""

INVENTORY = """\
all:
  children:
    testbeds: {hosts: {bed: {perfbisect_kind: local}}}
    builders: {hosts: {here: {ansible_connection: local}}}
"""


@pytest.fixture(scope="module")
def ansible(tmp_path_factory: pytest.TempPathFactory) -> Ansible:
    folder = tmp_path_factory.mktemp("play books")  # a blank in the path must not matter
    for name in ("ansible.cfg", "reap.yml"):
        (folder / name).write_text((resource("playbooks") / name).read_text())
    (folder / "nap.yml").write_text(PLAYBOOK)
    (folder / "broken.yml").write_text("- hosts: all\n  tasks: [nonsense\n")
    (folder / "lab.yml").write_text(INVENTORY)
    return Ansible(folder, folder / "lab.yml")


def play(ansible: Ansible, folder: Path, name: str = "nap", **options: Any) -> Played:
    variables = {"word": "hi", "nap": 0, "code": 0, **options.pop("variables", {})}
    settings = {"limit": "here", "timeout": 60, "progress": lambda _: None, **options}
    return ansible.play(name, variables=variables, folder=folder, **settings)


def asleep(seconds: str) -> bool:
    return subprocess.run(["pgrep", "-f", f"^sleep {seconds}$"], stdout=subprocess.DEVNULL).returncode == 0


def test_tasks_become_progress_and_results(ansible: Ansible, tmp_path: Path) -> None:
    said: list[str] = []
    played = play(ansible, tmp_path / "a b", progress=said.append)
    assert said == ["saying a word", "napping"]
    assert played.result("saying a word")["stdout"].strip() == "hi"
    assert [task.status for task in played.tasks] == ["ok", "ok"]
    assert "saying a word" in played.log.read_text()
    assert list((tmp_path / "a b").iterdir()) == [played.log]
    with pytest.raises(InfrastructureError, match="ran no task 'singing'"):
        played.result("singing")


@pytest.mark.parametrize("word", ["{{ lookup('pipe', 'echo ran') }}", "{% raw %}a{% endraw %}", "{# a #}"])
def test_a_text_that_looks_like_a_template_is_a_text(ansible: Ansible, tmp_path: Path, word: str) -> None:
    """A kernel under test has a say in some values: its release, what its compilers are called."""
    (ansible.playbooks / "say.yml").write_text(SAY)
    played = play(ansible, tmp_path, "say", variables={"word": word, "list": [word], "map": {"a": word}})
    assert played.result("saying all")["stdout_lines"] == [word, word, word]


def test_a_failed_task_is_an_error_or_data(ansible: Ansible, tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="the task 'napping' failed on 'here'"):
        play(ansible, tmp_path, variables={"code": 3})
    played = play(ansible, tmp_path, variables={"code": 3}, check=False)
    assert played.failed is not None
    assert played.failed.result["rc"] == 3


def test_what_ansible_cannot_run_is_infrastructure(ansible: Ansible, tmp_path: Path) -> None:
    with pytest.raises(
        InfrastructureError, match=r"could not be run: YAML parsing failed: .* \(.*broken\.yml:\d+\)"
    ):
        play(ansible, tmp_path, name="broken")
    with pytest.raises(InfrastructureError):
        play(ansible, tmp_path, limit="nobody")


def test_the_deadline_ends_everything(ansible: Ansible, tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(InfrastructureError, match="did not end within 8 s"):
        play(ansible, tmp_path, variables={"nap": 98761}, timeout=8)
    assert not asleep("98761")
    assert time.monotonic() - started < 60


def test_a_request_to_stop_ends_everything_here_and_there(
    sshd: Server, ansible: Ansible, tmp_path: Path
) -> None:
    begun: list[str] = []
    stopping = Ansible(ansible.playbooks, ansible.inventory, stop=lambda: asleep("98762"))
    with pytest.raises(Interrupted):
        play(
            stopping,
            tmp_path,
            limit="bed",
            connection=sshd.host,
            variables={"nap": 98762},
            progress=begun.append,
        )
    assert begun[-1] == "napping"
    assert not asleep("98762")


def test_no_connection_outlives_its_play(sshd: Server, ansible: Ansible, tmp_path: Path) -> None:
    played = play(ansible, tmp_path, limit="bed", connection=sshd.host)
    assert played.result("saying a word")["stdout"].strip() == "hi"
    until(lambda: sshd.connections() == [], 30)  # the server notices a moment later


def test_a_long_temporary_folder_leaves_room_for_the_socket(
    sshd: Server, ansible: Ansible, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (long := tmp_path / (100 * "a")).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    played = play(ansible, tmp_path, limit="bed", connection=sshd.host)
    assert played.result("saying a word")["stdout"].strip() == "hi"


def test_an_unreachable_host_is_infrastructure(sshd: Server, ansible: Ansible, tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="cannot reach 'bed'"):
        play(ansible, tmp_path, limit="bed", connection=sshd.with_(port=free_port()))


def test_the_labs_inventory_is_read_and_remembered(
    ansible: Ansible, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = read_lab(ansible.inventory, tmp_path)
    assert [bed.name for bed in lab.testbeds] == ["bed"]
    assert lab.builder("here").connection.local
    monkeypatch.setattr(inventory, "run_command", None)  # Ansible takes a second
    assert read_lab(ansible.inventory, tmp_path) == lab


def test_an_inventory_is_read_without_a_home(
    ansible: Ansible, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service's may be read-only, or none; Ansible makes its temporary folder there."""
    home = tmp_path / "home"
    home.touch()
    monkeypatch.setenv("HOME", str(home))
    assert read_lab(ansible.inventory).testbeds


def test_a_broken_inventory_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "lab.yml").write_text("all:\n  hosts: [\n")
    with pytest.raises(RequestError, match=r"lab\.yml:\d+: not valid YAML"):
        read_lab(tmp_path / "lab.yml")


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("lab.ini", "[all\nfoo bar=1\n", "not enough values to unpack"),
        ("lab.yml", "all:\n  hosts: 3\n", 'Invalid "hosts" entry for "all" group'),
        ("program", "#!/bin/sh\necho boom >&2\nexit 3\n", "Inventory script returned non-zero exit code 3"),
    ],
)
def test_an_inventory_that_ansible_refuses_gives_its_reason(
    tmp_path: Path, name: str, text: str, reason: str
) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / name).chmod(0o755 if text.startswith("#!") else 0o644)
    with pytest.raises(RequestError, match=f"{name}: Ansible cannot read this inventory") as error:
        read_lab(tmp_path / name)
    assert reason in error.value.message


@pytest.mark.parametrize("path", sorted(resource("playbooks").glob("*.yml")), ids=lambda p: Path(p).stem)
def test_every_shipped_playbook_is_accepted_by_ansible(path: Path, tmp_path: Path) -> None:
    import sys

    subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "--syntax-check", "-i", "x,", str(path)],
        check=True,
        cwd=path.parent,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(tmp_path)},
    )


def test_a_machine_prepared_by_hand_is_told_what_only_a_boot_can_have(tmp_path: Path) -> None:
    import sys

    lab = tmp_path / "lab.yml"
    lab.write_text(
        "all: {children: {testbeds: {hosts: {here: {ansible_connection: local, perfbisect_environment: "
        '{aslr: "off", isolated: "1", kaslr: "off"}}}}}}'
    )
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "-i", str(lab), "quiet.yml", "--check"],
        cwd=resource("playbooks"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "aslr: 2 -> 0" in done.stdout or "aslr: 0 already" in done.stdout, done.stdout
    for name in ("isolated", "kaslr"):
        assert f"{name}: not set by hand, each boot of a trial has it" in done.stdout, done.stdout
    assert "caches" not in done.stdout


def test_a_workload_is_never_unpacked_where_another_user_was_quicker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In /var/tmp anybody may make the folder, or a link of its name, once the old one is removed."""
    (tmp_path / "lab.yml").write_text(INVENTORY)
    theirs, work, tools = tmp_path / "theirs", tmp_path / "new" / "work", tmp_path / "tools"
    theirs.mkdir()
    tools.mkdir()
    with tarfile.open(tmp_path / "payload.tar", "w") as archive:
        archive.add(tmp_path / "lab.yml", arcname="program")
    variables = {
        "perfbisect_archive": str(tmp_path / "payload.tar"),
        "perfbisect_workdir": str(work),
        "perfbisect_prepare": "ls",
    }

    def deploy(folder: str) -> Played:
        ansible = Ansible(resource("playbooks"), tmp_path / "lab.yml")
        return play(ansible, tmp_path / folder, "deploy", variables=variables, check=False)

    assert deploy("first").failed is None and (work / "program").is_file()
    (tools / "rm").write_text(f'#!/bin/sh\n/bin/rm "$@"\n[ -e {work} ] || ln -s {theirs} {work}\n')
    (tools / "rm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    assert deploy("second").failed is not None
    assert list(theirs.iterdir()) == []
