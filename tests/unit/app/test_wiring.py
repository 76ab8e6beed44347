"""The wiring: each adapter is made once, when it is needed, from the settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.machine.host_turns import TestbedOnHost
from bisector.adapters.machine.local_testbed import LocalTestbed
from bisector.adapters.machine.ssh_testbed import SSHTestbed
from bisector.app.wiring import Wiring
from bisector.errors import Interrupted, RequestError
from bisector.schemas.request import Request
from bisector.schemas.settings import Settings
from tests.support.small_git import SmallGit

LAB = """
all:
  children:
    builders: {hosts: {%s}}
    testbeds:
      hosts:
        here: {perfbisect_kind: local}
        box:
          perfbisect_kind: ssh
          perfbisect_clock: wall
          perfbisect_boot_method: kexec
          ansible_host: 192.0.2.1
          ansible_ssh_private_key_file: /key
"""


@pytest.fixture
def wiring(tmp_path: Path) -> Wiring:
    inventory = tmp_path / "lab.yml"
    inventory.write_text(LAB % "one: {ansible_connection: local}, two: {ansible_connection: local}")
    state, cache, locks = (tmp_path / name for name in ("state", "cache", "locks"))
    return Wiring(Settings(state_dir=state, cache_dir=cache, lock_dir=locks, lab=inventory))


def test_asking_whether_there_are_bisections_makes_no_state_folder(wiring: Wiring) -> None:
    assert not wiring.has_store
    assert not wiring.settings.state_dir.exists()
    assert wiring.store is wiring.store
    assert wiring.has_store


def test_the_inventory_is_read_once(wiring: Wiring) -> None:
    assert wiring.lab is wiring.lab


def test_a_builder_is_the_first_unless_named(wiring: Wiring) -> None:
    assert wiring.builder("/repo").host == "one"
    assert wiring.builder("/repo", "two").host == "two"


def test_a_lab_without_builders_is_refused(wiring: Wiring, tmp_path: Path) -> None:
    (tmp_path / "lab.yml").write_text(LAB % "")
    with pytest.raises(RequestError, match="no host in the group 'builders'"):
        wiring.builder("/repo")


def test_the_kind_of_a_testbed_decides_its_adapter(wiring: Wiring) -> None:
    for name, adapter in (("here", LocalTestbed), ("box", SSHTestbed)):
        testbed = wiring.testbed(name)
        assert isinstance(testbed, TestbedOnHost)
        assert isinstance(testbed._testbed, adapter)
    with pytest.raises(RequestError):
        wiring.testbed("nowhere")


def test_the_repository_is_that_of_the_settings_or_the_folder(
    wiring: Wiring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert wiring.repo == tmp_path
    named = Wiring(wiring.settings.model_copy(update={"repo": tmp_path / "linux"}))
    assert named.repo == tmp_path / "linux"


def test_the_repository_of_a_request_is_trusted_as_its_user_said(
    wiring: Wiring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = SmallGit(tmp_path / "linux").make("a\n")
    trusted: list[Path] = []
    monkeypatch.setattr("bisector.adapters.git.repository.trust", trusted.append)
    request = Request(good="a", bad="a", workload="w", repo=str(small.path))
    assert wiring.source_of(request).resolve("a") == small.ids["a"]
    assert trusted == []
    wiring.source_of(request.model_copy(update={"trust_repo": True}))
    assert trusted == [small.path]


def test_a_claimed_testbed_is_anothers_whatever_its_state_folder(wiring: Wiring, tmp_path: Path) -> None:
    other = Wiring(wiring.settings.model_copy(update={"state_dir": tmp_path / "another"}))
    with wiring.claim_testbed("box", print) as wanted:
        assert not wanted()
        with pytest.raises(Interrupted), other.claim_testbed("box", print, lambda: True):
            pass
        asked: list[bool] = []

        def while_waiting() -> bool:
            asked.append(wanted())
            return True

        with pytest.raises(Interrupted), other.claim_testbed("box", print, while_waiting):
            pass
        assert asked == [True]
        with other.claim_testbed("here", print, lambda: True):
            pass
        assert not wanted()
    with other.claim_testbed("box", print, lambda: True):
        pass


def test_who_waits_is_told_what_the_holder_is_doing(wiring: Wiring, tmp_path: Path) -> None:
    wiring.doing = "bisection 'x'"
    with wiring.claim_testbed("box", print):
        (lock,) = (path for path in (tmp_path / "locks").iterdir() if path.suffix != ".turn")
        said = lock.read_text()
    assert lock.name == "testbed-192.0.2.1-22"
    assert f"(bisection 'x', state folder {tmp_path / 'state'}), since 2" in said
    assert said.endswith("\nthe testbed 'box'\n")


def test_a_builder_measures_where_it_shares_a_machine_with_a_testbed(wiring: Wiring, tmp_path: Path) -> None:
    hosts = "far: {ansible_host: 192.0.2.1}, one: {ansible_connection: local}, two: {ansible_host: 192.0.2.9}"
    (tmp_path / "lab.yml").write_text(LAB % hosts)
    assert wiring.measuring_builders(["box"]) == {0}
    assert wiring.measuring_builders(["here"]) == {1}
    assert wiring.measuring_builders(["box", "here"]) == {0, 1}
    assert wiring.measuring_builders([]) == frozenset()


def test_testbed_and_builder_take_turns_on_the_machine_that_they_share(wiring: Wiring) -> None:
    testbed, builder = wiring.testbed("here"), wiring.builder("/repo")
    assert isinstance(testbed, TestbedOnHost)
    with wiring.this_machine() as here:
        assert isinstance(here, TestbedOnHost)
        for shared in (testbed._host, here._host):
            assert shared.names == ("host-here",)
    with builder.in_turn(print):
        alone = replace(testbed._host, stop=lambda: True)
        with pytest.raises(Interrupted), alone.exclusive(print):
            pass
        with alone.shared(print):
            pass
