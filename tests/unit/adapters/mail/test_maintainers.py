"""Author, sign-offs, and what a tree's own script says, which is foreign code and may do anything."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from bisector.adapters.mail import maintainers
from bisector.adapters.mail.maintainers import find_recipients
from bisector.resources import resource
from tests.support.small_git import SmallGit

SANDBOX = (resource("playbooks") / "files" / "sandbox.sh").read_text(encoding="utf-8")
ASK = "#!/usr/bin/perl\n"
GOOD = (
    ASK
    + "open F, $ARGV[-1]; $n = grep /^\\+\\+\\+ b\\/kernel/, <F>; "
    + 'print "Bo <bo\\@x.org>\\nlist\\@x.org\\n" if $n;'
)

needs_sandbox = pytest.mark.skipif(
    shutil.which("perl") is None or (shutil.which("bwrap") is None and os.getuid() != 0),
    reason="needs perl and a sandbox (bubblewrap or root)",
)


@pytest.fixture
def tree(tmp_path: Path) -> SmallGit:
    made = SmallGit(tmp_path / "tree")
    made.make("a")
    return made


def commit(tree: SmallGit, files: dict[str, str], message: str, author: str = "Zoë <z@x.org>") -> str:
    for name, text in files.items():
        path = tree.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(text)
    tree.git("add", "-A")
    identity = ("-c", "user.name=c", "-c", "user.email=c@x.org")
    tree.git(*identity, "commit", "-q", f"--author={author}", "-m", message)
    return tree.git("rev-parse", "HEAD").strip()


CHANGE = {"kernel/new.c": "int x;\n"}
MESSAGE = "x86: change\n\nSigned-off-by: Zoë <z@x.org>\nSigned-off-by: Ann <ann@x.org>\nCc: no@x.org\n"


def find(tree: SmallGit, sha: str) -> tuple[tuple[str, ...], str]:
    found = find_recipients(tree.path, sha, SANDBOX)
    return found.addresses, " ".join(found.notes)


def test_a_tree_without_the_script_says_so(tree: SmallGit) -> None:
    sha = commit(tree, CHANGE, MESSAGE)
    people = ("Zoë <z@x.org>", "Ann <ann@x.org>")
    note = "Only author and sign-offs get this mail: the tree has no scripts/get_maintainer.pl."
    assert find(tree, sha) == (people, note)
    commit(tree, {".get_maintainer.ignore": "# who wants none\nann@x.org\n"}, "ignore")
    assert find(tree, sha)[0] == people[:1], "of the newest tree"


@needs_sandbox
def test_maintainers_and_lists_come_from_the_newest_tree(tree: SmallGit) -> None:
    sha = commit(tree, CHANGE, MESSAGE)
    commit(tree, {maintainers.SCRIPT: GOOD, "MAINTAINERS": "M: Bo"}, "later")
    assert find(tree, sha) == (("Zoë <z@x.org>", "Ann <ann@x.org>", "Bo <bo@x.org>", "list@x.org"), "")


def test_the_newest_tree_may_be_one_that_only_a_night_has_fetched(tree: SmallGit) -> None:
    sha = commit(tree, CHANGE, MESSAGE)
    fetched = commit(tree, {".get_maintainer.ignore": "ann@x.org\n"}, "ignore")
    tree.git("update-ref", "refs/perfbisect/origin/master", fetched)
    branch = tree.git("symbolic-ref", "HEAD").strip()
    tree.git("checkout", "-q", "--detach", sha)
    tree.git("update-ref", "-d", branch)
    assert find(tree, sha)[0] == ("Zoë <z@x.org>",)


@needs_sandbox
@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("die 'this perl is too young';", "this perl is too young"),
        ('print "x\\@x.org\\n" while 1;', "printed more than"),
        ("while (1) {}", "ended"),
        ("system('touch /perfbisect-was-here'); die 'tried';", "tried"),
        (
            "use Socket; socket(S, 2, 1, 0); connect(S, sockaddr_in(80, inet_aton('1.1.1.1'))) or die $!;",
            "nreachable",
        ),
        ("opendir(D, '/home') or die 'no home'; print 'x'; die 'seen';", "no home"),
        ("print STDERR qq(\\e[31mred\\n); exit 2;", "\\x1b[31mred"),
    ],
)
def test_a_script_that_fails_or_attacks(
    tree: SmallGit, monkeypatch: pytest.MonkeyPatch, script: str, why: str
) -> None:
    monkeypatch.setattr(maintainers, "_RUN", maintainers._RUN.replace("-t 50", "-t 1"))
    monkeypatch.setattr(maintainers, "_MAX_OUTPUT_BYTES", 20_000)
    sha = commit(tree, {**CHANGE, maintainers.SCRIPT: ASK + script, "MAINTAINERS": "x"}, MESSAGE)
    addresses, note = find(tree, sha)
    assert addresses == ("Zoë <z@x.org>", "Ann <ann@x.org>")
    assert note.startswith("Only author and sign-offs get this mail:") and "\x1b" not in note
    assert why in note or why in ("printed more than", "ended"), note
    assert not Path("/perfbisect-was-here").exists()


@needs_sandbox
def test_without_a_sandbox_the_script_does_not_run(tree: SmallGit) -> None:
    sha = commit(tree, {**CHANGE, maintainers.SCRIPT: GOOD, "MAINTAINERS": "x"}, MESSAGE)
    broken = SANDBOX + "\nin_bubblewrap() { return 1; }\nin_namespaces() { return 1; }\n"
    found = find_recipients(tree.path, sha, broken)
    assert (
        found.addresses == ("Zoë <z@x.org>", "Ann <ann@x.org>") and "no sandbox works here" in found.notes[0]
    )


def test_a_link_in_place_of_a_file_is_not_followed(tree: SmallGit) -> None:
    (tree.path / ".get_maintainer.ignore").symlink_to("/etc/passwd")
    sha = commit(tree, CHANGE, MESSAGE)
    assert len(find(tree, sha)[0]) == 2
    (tree.path / "scripts").mkdir()
    (tree.path / maintainers.SCRIPT).symlink_to("/bin/true")
    sha = commit(tree, {**CHANGE, "MAINTAINERS": "x"}, MESSAGE)
    assert "the tree has no scripts/get_maintainer.pl" in find(tree, sha)[1], "its target is no program"


def test_hostile_authors_are_no_recipients(tree: SmallGit) -> None:
    sha = commit(tree, CHANGE, "x\n\nSigned-off-by: -oQ/tmp <a b@x.org>\n", author="Evil <not an address>")
    assert find(tree, sha)[0] == ()
