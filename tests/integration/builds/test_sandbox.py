"""The sandbox of kernel builds (playbooks/files/sandbox.sh), attacked in each of its forms from within."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bisector.resources import resource

USER = 1000
"""Who runs perfbisect in the tests of an ordinary user; no such user has to exist."""

NAMESPACES = ("bubblewrap", "namespaces")
FORMS = [
    *(("root", form) for form in (*NAMESPACES, "user")),
    *(("ordinary", form) for form in NAMESPACES),
]

ATTACK = r"""
id -u >$OUT/uid
cat /proc/self/uid_map >$OUT/map
for path in $HIDDEN $HOST_HOME/.ssh/id_rsa $HOST_HOME; do cat $path; ls $path; done >$OUT/read 2>/dev/null
for folder in $FOLDER $SHOWN $HOST_HOME /usr /etc; do echo evil >$folder/planted; done 2>/dev/null
ln -s $HIDDEN $OUT/link
kill -9 $VICTIM 2>/dev/null && echo killed >$OUT/killed
(exec 3<>/dev/tcp/127.0.0.1/$PORT) 2>/dev/null && echo connected >$OUT/connected
setsid sleep $NAP >/dev/null 2>&1 &
setsid setsid sleep $NAP >/dev/null 2>&1 &
truncate -s 17G $OUT/large 2>/dev/null && echo written >$OUT/truncated
chmod 000 $OUT/closed
grep NoNewPrivs /proc/self/status >$OUT/privileges
ls /proc/self/fd | wc -l >$OUT/descriptors
cat $SHOWN/tool >$OUT/tool
echo evil >/linux/planted 2>/dev/null
ls /linux >$OUT/tree 2>/dev/null
touch $OUT/done
"""


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "98764"]) as process:
        yield process
        process.kill()


def run(
    who: str, form: str, folder: Path, script: str, **variables: object
) -> subprocess.CompletedProcess[str]:
    """Run a script in the sandbox, as root or as an ordinary user."""
    if os.geteuid() != 0 and who == "root":
        pytest.skip("only root is root")
    if shutil.which("bwrap") is None and form == "bubblewrap":
        pytest.skip("bubblewrap is not installed")
    text = f"""
set -eu -o pipefail
. {resource("playbooks")}/files/sandbox.sh
sandbox_owner "$OUT"
show_programs bash
visible=("$SHOWN")
tree=${{TREE-}}
writable=("$OUT")
sandbox={form}
exec 9>>"$PB_FOLDER/lock"
sandboxed bash -c "$SCRIPT"
"""
    environment = {"PATH": os.environ["PATH"], "PB_FOLDER": str(folder), "SCRIPT": script}
    environment |= {name: str(value) for name, value in variables.items()}
    command = ["bash", "-c", text]
    if os.geteuid() == 0 and who == "ordinary":
        command = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", *command]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder that an ordinary user can reach: pytest's own are closed to others."""
    folder = Path("/var/tmp") / f"perfbisect-test-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("pb/builder", "pb/out/closed", "pb/tree", "shown", "home/.ssh"):
        (folder / name).mkdir(parents=True)
    (folder / "home" / ".ssh" / "id_rsa").write_text("SECRET\n")
    (folder / "hidden").write_text("SECRET\n")
    (folder / "shown" / "tool").write_text("a tool\n")
    (folder / "pb" / "tree" / "Makefile").touch()
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize(("who", "form"), FORMS, ids=["-".join(pair) for pair in FORMS])
def test_what_runs_in_the_sandbox_reaches_nothing_outside(
    world: Path, listener: socket.socket, victim: subprocess.Popen[bytes], who: str, form: str
) -> None:
    out = world / "pb" / "out"
    if who == "ordinary" and os.geteuid() == 0:
        subprocess.run(["chown", "-R", f"{USER}:{USER}", str(world)], check=True)
    else:
        (world / "home").chmod(0o700)
    before = {path for path in world.rglob("*") if not path.is_relative_to(out)}
    told = {
        "HOME": world / "home",
        "HOST_HOME": world / "home",
        "FOLDER": world / "pb",
        "OUT": out,
        "SHOWN": world / "shown",
        "TREE": world / "pb" / "tree",
        "HIDDEN": world / "hidden",
        "VICTIM": victim.pid,
        "PORT": listener.getsockname()[1],
        "NAP": 10**6 + os.getpid(),  # seconds, of this process of tests alone
    }
    done = run(who, form, world / "pb", ATTACK, **told)
    assert (out / "done").exists(), done.stderr
    assert (out / "tool").read_text() == "a tool\n"
    assert (out / "uid").read_text() != "0\n", "not root inside"
    assert (out / "done").stat().st_uid != 0, "not root outside"
    assert "NoNewPrivs:\t1" in (out / "privileges").read_text()
    after = {path for path in world.rglob("*") if not path.is_relative_to(out)}
    assert {path.relative_to(world) for path in after - before} <= {Path("pb/lock"), Path("pb/builder/root")}
    assert not (out / "killed").exists()
    assert victim.poll() is None
    assert not (out / "truncated").exists(), "a file has at most 16 GiB"
    assert (
        subprocess.run(["pgrep", "-f", f"^sleep {told['NAP']}$"], stdout=subprocess.DEVNULL).returncode == 1
    )
    assert not any(Path(folder, "planted").exists() for folder in ("/usr", "/etc"))
    if form == "user":  # it has the network, and sees what everybody may read
        assert (out / "read").read_text().count("SECRET") == 1
        return
    assert (out / "tree").read_text() == "Makefile\n", "the tree is at one place, and nobody writes there"
    assert "SECRET" not in (out / "read").read_text()
    assert not (out / "connected").exists()
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_the_first_form_that_works_is_chosen(world: Path) -> None:
    (world / "bin").mkdir()
    for tool in Path("/usr/bin").iterdir():
        if tool.name not in ("bwrap", "unshare"):
            (world / "bin" / tool.name).symlink_to(tool)
    text = f"""
set -eu
. {resource("playbooks")}/files/sandbox.sh
sandbox_owner "$PB_FOLDER/out"
show_programs bash
choose_sandbox "$PB_FOLDER/out"
echo $sandbox ${{#writable[@]}}
"""
    found = []
    for path in (os.environ["PATH"], str(world / "bin")):
        environment = {"PATH": path, "PB_FOLDER": str(world / "pb"), "HOME": "/root"}
        found.append(
            subprocess.run(["bash", "-c", text], env=environment, capture_output=True, text=True).stdout
        )
    first = "bubblewrap 0\n" if shutil.which("bwrap") else "namespaces 0\n"
    assert found == [first, "user 0\n" if os.geteuid() == 0 else "none 0\n"]
    (world / "pb").chmod(0o700)  # no other user gets in
    done = subprocess.run(["bash", "-c", text], env=environment, capture_output=True, text=True)
    assert done.stdout == "none 0\n"


def test_a_folder_that_holds_the_home_is_not_shown_as_a_compiler_s(world: Path) -> None:
    home = world / "home"
    (home / "bin").mkdir()
    (home / "bin" / "gcc-99").symlink_to("/bin/true")
    tool = home / "bin" / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    text = f"""
set -eu
. {resource("playbooks")}/files/sandbox.sh
show_programs gcc-99 tool absent
printf '%s\\n' "${{programs[@]}}"
"""
    path = f"/usr/bin:relative:{home}:/:{home / 'bin'}"
    environment = {"PATH": path, "PB_FOLDER": str(world / "pb"), "HOME": str(home)}
    done = subprocess.run(["/bin/bash", "-c", text], env=environment, capture_output=True, text=True)
    assert set(done.stdout.split()) == {str(home / "bin")}, done.stderr
