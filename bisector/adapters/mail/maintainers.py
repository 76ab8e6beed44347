"""Author, sign-offs, maintainers and lists of a commit.

The tree's own `scripts/get_maintainer.pl` is asked, of the newest commit that the repository has. It is
foreign code: it runs in the sandbox of builds, without network, with limits of time, memory and output, on a
folder that has nothing but the script, MAINTAINERS and the change. Where no sandbox works it does not run.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from bisector.adapters.git.repository import Repository
from bisector.adapters.mail.recipients import Recipients, choose
from bisector.adapters.system.command import run_command
from bisector.errors import PerfbisectError
from bisector.model.printable import printable_line

SCRIPT, KEEPERS, IGNORED = "scripts/get_maintainer.pl", "MAINTAINERS", ".get_maintainer.ignore"
_SECONDS = 60.0
"""Timeout of the script. MAINTAINERS of 2023 takes it 0.4 s, and a busy machine ten times as long."""
_MAX_OUTPUT_BYTES = 1 << 20
_MAX_CHANGE_CHARACTERS = 4 << 20
"""Most that the script may print, and most of a change that it is given. Chosen: it prints some dozen
addresses, and hardly any commit is larger."""
_SIGNED = re.compile(r"^signed-off-by:[ \t]*(\S[^\n]{0,300})$", re.MULTILINE | re.IGNORECASE)

# Goes behind sandbox.sh. The script's standard error goes to a file: what it prints are addresses alone.
_RUN = r"""
choose_sandbox "$PB_FOLDER/builder/out"
case $sandbox in bubblewrap | namespaces) ;; *) echo "E no sandbox works here"; exit 0 ;; esac
visible=("$PB_FOLDER/tree")
ulimit -t 50
ulimit -v 2000000
options="--no-tree --no-git --no-git-fallback --no-rolestats --no-fixes"
ask() { # options
    sandboxed bash -c 'cd "$1" && shift && exec perl scripts/get_maintainer.pl "$@" "$PWD/change.patch"' \
        bash "$PB_FOLDER/tree" "$@" 2>"$PB_FOLDER/errors"
}
if ask $options >"$PB_FOLDER/found" || ask ${options% *} >"$PB_FOLDER/found"; then
    sed 's/^/R /' "$PB_FOLDER/found"
else
    echo "E $(grep -v '^$' "$PB_FOLDER/errors" | tail -n 1)"
fi
"""
"""--no-fixes is younger than the other options (v5.9): without it, trees before that are asked again."""


def find_recipients(repository: Path, commit: str, sandbox: str) -> Recipients:
    """Return who a commit's report goes to. sandbox: the text of sandbox.sh.

    Raises RequestError, InfrastructureError where git cannot read the commit.
    """
    repo = Repository(repository)
    people = _people(repo, commit)
    newest = _newest(repo)
    ignored = [line.partition("#")[0].strip() for line in _file(repo, newest, IGNORED).splitlines()]
    script, keepers = _file(repo, newest, SCRIPT), _file(repo, newest, KEEPERS)
    alone = "Only author and sign-offs get this mail:"
    if not script or not keepers:
        return choose(people, (), ignored, [f"{alone} the tree has no {SCRIPT}."])
    found, failure = _ask(script, keepers, _change(repo, commit), sandbox)
    return choose(people, found, ignored, [f"{alone} {SCRIPT} fails ({failure})."] if failure else ())


def _people(repo: Repository, commit: str) -> list[str]:
    text = repo.run("log", "-1", "--encoding=UTF-8", "--format=%aN <%aE>%n%B", commit, "--").output
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    author, _, message = text.partition("\n")
    return [author, *_SIGNED.findall(message)]


def _newest(repo: Repository) -> str:
    """Return the newest commit of all branches, of remote ones and of those that nights fetch as well.

    Its MAINTAINERS knows who is there.
    """
    refs = ("refs/heads", "refs/remotes", "refs/perfbisect")
    listed = repo.run("for-each-ref", "--sort=-committerdate", "--count=1", "--format=%(objectname)", *refs)
    return listed.output.strip() or "HEAD"


def _file(repo: Repository, commit: str, path: str) -> str:
    """Return a file of a commit, '' where it has none. Links do not count: they may lead out of the tree."""
    entry = repo.run("ls-tree", commit, "--", path).output
    if not re.match(r"100(644|755) blob ", entry):
        return ""
    return repo.run("cat-file", "blob", entry.split()[2]).output


def _change(repo: Repository, commit: str) -> str:
    options = ("-p", "-m", "--first-parent", "--root", "--no-commit-id", "-r")
    return repo.run("diff-tree", *options, commit).output[:_MAX_CHANGE_CHARACTERS]


def _ask(script: str, keepers: str, change: str, sandbox: str) -> tuple[list[str], str]:
    """Return what the script prints, and why it fails, '' if it does not."""
    with tempfile.TemporaryDirectory(prefix="perfbisect-mail-") as made:
        folder = Path(made)
        folder.chmod(0o755)  # the sandbox may run as another user
        tree = folder / "tree"
        (tree / "scripts").mkdir(parents=True)
        for name, text in ((SCRIPT, script), (KEEPERS, keepers), ("change.patch", change)):
            (tree / name).write_text(text, encoding="utf-8", errors="surrogateescape")
            (tree / name).chmod(0o644)
        start = folder / "ask.sh"
        out = 'set -u -o pipefail\nmkdir -p "$PB_FOLDER/builder/out"\n'
        own = 'sandbox_owner "$PB_FOLDER/builder/out"\n'
        start.write_text(f"{out}{sandbox}\n{own}{_RUN}", encoding="utf-8")
        try:
            done = run_command(
                ["bash", start],
                env={"PB_FOLDER": made, "PB_CONTAINER": "", "LC_ALL": "C.UTF-8"},
                timeout=_SECONDS,
                max_bytes=_MAX_OUTPUT_BYTES,
                check=False,
            )
        except PerfbisectError as error:
            return [], error.message
    lines = done.output.splitlines()
    failed = [printable_line(line[2:])[:200] for line in lines if line.startswith("E ")]
    found = [line[2:].strip() for line in lines if line.startswith("R ")]
    if failed or done.code != 0:
        return [], failed[0] if failed and failed[0] else f"it ended with code {done.code}"
    return list(filter(None, found)), ""
