"""Commits whose build attacks the builder: whole builds, by Ansible, of trees with such Makefiles.

What each form of the sandbox keeps out: `test_sandbox.py`.
"""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.builder import KernelBuilder
from bisector.errors import BuildFailed, InfrastructureError
from bisector.resources import resource
from tests.support.toy_kernel import MAKEFILE, BuildLab, ToyHistory, tools_missing

pytestmark = pytest.mark.skipif(bool(tools_missing()), reason=f"not installed: {tools_missing()}")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> BuildLab:
    return BuildLab(tmp_path_factory.mktemp("hostile"))


def attacking(script: str, *rules: str) -> dict[str, str]:
    """A toy kernel that runs a script when these targets are made."""
    makefile = MAKEFILE
    for rule in rules:
        makefile = makefile.replace(f"\n{rule}:", f"\n{rule}: evil\n{rule}:")
    return {"Makefile": makefile + "evil:\n\t@sh $(srctree)/evil.sh\n", "evil.sh": script}


def test_a_build_that_attacks_touches_nothing_and_the_next_one_is_right(
    lab: BuildLab, tmp_path: Path
) -> None:
    cache, secret, taken = lab.root / "cache", tmp_path / "id_rsa", tmp_path / "taken"
    secret.write_text("SECRET\n")
    secret.chmod(0o644)
    good = lab.builder().build(lab.order(lab.base), lab.progress.append)
    with socket.create_server(("127.0.0.1", 0)) as server, subprocess.Popen(["sleep", "98766"]) as victim:
        server.setblocking(False)
        port = server.getsockname()[1]
        script = f"""
echo "user $(id -u) of $(awk '{{ print $2 }}' /proc/self/uid_map)"
cat {secret} $HOME/.ssh/* {cache}/kernels/*/kernel.json 2>&1
for folder in {tmp_path} {cache} {cache}/kernels {cache}/builder {cache}/builder/source /etc /usr; do
    echo evil >$folder/planted
done 2>/dev/null
bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port} && echo CONNECTED' 2>/dev/null
kill -9 {victim.pid} 2>/dev/null
setsid sleep 98765 >/dev/null 2>&1 &
for name in .perfbisect-age .perfbisect-config planted; do
    ln -sf {taken} {cache}/builder/out/toy-0/$name {cache}/builder/work/
done 2>/dev/null
exit 0
"""
        evil = lab.change(
            attacking(script, "tinyconfig", "bzImage"), "attacks while it is configured and linked"
        )
        kernel = lab.builder().build(lab.order(evil), lab.progress.append)
        assert victim.poll() is None
        with pytest.raises(BlockingIOError):
            server.accept()
        victim.kill()
    log = kernel.log.read_text()
    assert "SECRET" not in log
    assert "CONNECTED" not in log
    # tuxmake may make a namespace, where the builder's own user is called root.
    users = [line for line in log.splitlines() if line.startswith("user ")]
    assert len(users) == 2
    assert "user 0 of 0" not in users
    assert kernel.binary == good.binary
    planted = [path for folder in (tmp_path, cache, Path("/etc")) for path in folder.glob("**/planted")]
    assert [path for path in planted if not path.is_symlink()] == []
    assert not Path("/usr/planted").exists()
    assert subprocess.run(["pgrep", "-f", "^sleep 98765$"], stdout=subprocess.DEVNULL).returncode == 1
    if os.geteuid() == 0:
        assert (cache / "builder" / "out" / "toy-0" / "vmlinux").stat().st_uid != 0
    after = lab.change({"kernel/work.c": "int work(int x) { return x * 7; }\n"}, "harmless")
    assert lab.builder().build(lab.order(after), lab.progress.append).binary != good.binary
    assert not taken.exists()


def test_a_build_that_ends_all_that_it_can_is_a_commit_that_does_not_build(lab: BuildLab) -> None:
    evil = lab.change(attacking("kill -9 -1\n", "bzImage"), "kills")
    with pytest.raises(BuildFailed, match="does not build") as error:
        lab.builder().build(lab.order(evil), lab.progress.append)
    log = Path(error.value.details.rsplit("log: ", 1)[1]).read_text()
    assert "the build ended without an answer (code 137)" in log


def test_builds_of_two_repositories_share_nothing_that_a_build_can_write(tmp_path: Path) -> None:
    lab = BuildLab(tmp_path)
    other = ToyHistory.create(tmp_path / "other" / "repo")
    ansible = Ansible(resource("playbooks"), lab.inventory)
    foreign = KernelBuilder(other.path, lab.root / "cache", ansible, kernels=lab.kernels)
    first = lab.builder().build(lab.order(lab.base), lab.progress.append)
    warm = lab.root / "cache" / "builder"
    (warm / "out" / "toy-0" / "mine").touch()
    sha = other.commit({"kernel/work.c": "int work(int x) { return x * 8; }\n"}, "theirs")
    kernel = foreign.build(lab.order(sha), lab.progress.append)
    assert kernel.binary != first.binary
    assert lab.links(lab.root / "cache") == 1
    assert not (warm / "out" / "toy-0" / "mine").exists()
    again = lab.change({"kernel/work.c": "int work(int x) { return x * 9; }\n"}, "ours")
    lab.builder().build(lab.order(again), lab.progress.append)
    assert lab.links(lab.root / "cache") == 2, "its own folder is as warm as it was"
    assert (warm / "out" / "toy-0" / "mine").exists()


def test_a_builder_without_a_sandbox_is_told_what_brings_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = BuildLab(tmp_path)
    (tmp_path / "bin").mkdir()
    for program in Path("/usr/bin").iterdir():
        if program.name not in ("bwrap", "unshare"):
            (tmp_path / "bin" / program.name).symlink_to(program)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    tmp_path.chmod(0o700)
    with pytest.raises(InfrastructureError, match="the builder 'here' has no sandbox") as error:
        lab.builder().build(lab.order(lab.base), lab.progress.append)
    assert "bubblewrap" in error.value.cure
