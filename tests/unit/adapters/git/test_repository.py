"""The door to git: whose repository it is, what its configuration tries, and what the environment says."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bisector.adapters.git import repository
from bisector.adapters.git.changed_functions import touched_functions
from bisector.adapters.git.repository import Repository, find_repository
from bisector.adapters.git.source import GitSource
from bisector.errors import InfrastructureError, RequestError
from tests.support.small_git import SmallGit


@pytest.fixture
def small(tmp_path: Path) -> SmallGit:
    return SmallGit(tmp_path / "linux").make("a\nb: a\nc: b | kernel/fork.c\n")


def test_output_reason_and_codes(small: SmallGit) -> None:
    repository = Repository(small.path)
    assert repository.run("rev-parse", "b").output == f"{small.ids['b']}\n"
    assert repository.run("merge-base", "--is-ancestor", "c", "a", codes=(0, 1)).code == 1
    with pytest.raises(InfrastructureError, match=f"git cannot read the repository {small.path}") as error:
        repository.run("rev-list", "nowhere")
    assert "git rev-list nowhere" in error.value.details
    assert "unknown revision" in error.value.details
    assert "fsck" in error.value.cure


def test_standard_input_and_bytes_that_are_no_utf_8_pass_unchanged(small: SmallGit) -> None:
    repository = Repository(small.path)
    text = b"caf\xe9 \xc3\xa9\r\n".decode("utf-8", "surrogateescape")
    sha = repository.run("hash-object", "-w", "--stdin", stdin=text).output.strip()
    assert repository.run("cat-file", "blob", sha).output == text


def test_names_of_files_are_not_quoted(small: SmallGit) -> None:
    (small.path / "grün").write_text("x")
    small.git("add", "grün")
    assert "grün" in Repository(small.path).run("ls-files").output.splitlines()


def test_a_deadline_ends_the_command(small: SmallGit) -> None:
    small.git("config", "alias.wait", "!sleep 98751")
    with pytest.raises(InfrastructureError, match="'git wait' did not end within 0 s"):
        Repository(small.path).run("wait", timeout=0.4)
    assert subprocess.run(["pgrep", "-f", "^sleep 98751$"], stdout=subprocess.DEVNULL).returncode == 1


def test_git_that_is_not_installed_is_told(small: SmallGit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(small.path))
    with pytest.raises(InfrastructureError, match="'git' is not installed") as error:
        Repository(small.path).run("status")
    assert "doctor" in error.value.cure
    with pytest.raises(RequestError, match="'git' is not installed"):  # at the start of a command
        GitSource(small.path)


# --- a repository that attacks ------------------------------------------------------------------------------


@pytest.fixture
def attack(small: SmallGit, tmp_path: Path) -> tuple[str, Path]:
    """A program for the repository's configuration to name, and the file that shows that it ran."""
    shown, program = tmp_path / "shown", tmp_path / "attack"
    program.write_text(f"#!/bin/sh\necho $0 $* >>{shown}\n")
    program.chmod(0o755)
    return str(program), shown


def test_the_attack_would_work_without_the_options(small: SmallGit, attack: tuple[str, Path]) -> None:
    program, shown = attack
    small.git("config", "core.fsmonitor", program)
    subprocess.run(["git", "-C", str(small.path), "status"], check=False, capture_output=True)
    assert shown.exists()


def test_a_repository_s_fsmonitor_is_not_run(small: SmallGit, attack: tuple[str, Path]) -> None:
    program, shown = attack
    small.git("config", "core.fsmonitor", program)
    assert GitSource(small.path).notes() == ()
    assert not shown.exists()


def test_a_repository_s_filters_are_not_run(small: SmallGit, attack: tuple[str, Path]) -> None:
    program, shown = attack
    for key in ("clean", "process", "smudge"):
        small.git("config", f"filter.e=v.il.{key}", program)
    small.git("config", "filter.e=v.il.required", "true")
    (small.path / ".gitattributes").write_text("* filter=e=v.il\n")
    (small.path / "Makefile").write_text("changed\n")
    subprocess.run(["git", "-C", str(small.path), "diff"], check=False, capture_output=True)
    assert shown.exists(), "without care the filter runs"
    shown.unlink()
    (small.path / "Makefile").write_text("changed again\n")
    assert "1 uncommitted" in GitSource(small.path).notes()[0]
    assert not shown.exists()


def test_what_a_repository_names_for_diffs_signatures_and_hooks_is_not_run(
    small: SmallGit, attack: tuple[str, Path]
) -> None:
    program, shown = attack
    for key in ("diff.external", "diff.evil.textconv", "diff.evil.command", "gpg.program", "core.pager"):
        small.git("config", key, program)
    small.git("config", "log.showSignature", "true")
    small.git("config", "protocol.ext.allow", "always")
    head, _, message = small.git("cat-file", "commit", "b").partition("\n\n")
    armour = " -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    signed = small.git(
        "hash-object", "-t", "commit", "-w", "--stdin", stdin=f"{head}\ngpgsig{armour}\n\n{message}"
    ).strip()
    (small.path / ".git" / "info" / "attributes").write_text("*.c diff=evil\n")
    hooks = small.path / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "post-index-change").symlink_to(program)
    assert touched_functions(small.path, small.ids["c"]) == frozenset()
    source = GitSource(small.path)
    source.infos([small.ids["c"]], described=[small.ids["c"]])
    source.infos([signed])
    source.graph(small.ids["a"], small.ids["c"])
    Repository(small.path).run("update-index", "--refresh")
    with pytest.raises(InfrastructureError, match="git cannot read"):
        Repository(small.path).run("ls-remote", f"ext::{program} x")
    assert not shown.exists()


def test_a_partial_clone_fetches_nothing(small: SmallGit, attack: tuple[str, Path]) -> None:
    """git fetches by itself what such a clone lacks, by the programs that the configuration names."""
    program, shown = attack
    for key, value in {
        "extensions.partialClone": "origin",
        "core.repositoryFormatVersion": "1",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"file://{small.path}",
        "remote.origin.uploadpack": program,
        "protocol.allow": "always",
    }.items():
        small.git("config", key, value)
    blob = small.git("rev-parse", "c:kernel/fork.c").strip()
    (small.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink(missing_ok=True)
    for pack in (small.path / ".git" / "objects" / "pack").glob("*"):  # without the pack all is missing
        pack.unlink()
    subprocess.run(["git", "-C", str(small.path), "cat-file", "-p", blob], check=False, capture_output=True)
    assert shown.exists(), "without care the server's program runs"
    shown.unlink()
    with pytest.raises(RequestError, match="is a partial clone that lacks") as error:
        Repository(small.path).run("cat-file", "blob", blob)
    assert "fetch --refetch" in error.value.cure
    for url in (f"ext::{program} x", "ssh://127.0.0.1/x", "git://127.0.0.1/x", "https://127.0.0.1/x"):
        for key in ("core.sshCommand", "core.gitProxy", "credential.helper", "core.askPass"):
            small.git("config", key, program)
        small.git("config", "remote.origin.url", url)
        with pytest.raises(RequestError, match="is a partial clone"):
            Repository(small.path).run("cat-file", "blob", blob)
    assert not shown.exists()


def test_a_submodule_s_configuration_is_not_obeyed(small: SmallGit, attack: tuple[str, Path]) -> None:
    program, shown = attack
    inner = SmallGit(small.path / "inner.c").make("x\ny: x\n")
    inner.git("config", "diff.external", program)
    for sha in (inner.ids["x"], inner.ids["y"]):
        small.git("update-index", "--add", "--cacheinfo", f"160000,{sha},inner.c")
        small.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "inner")
    small.git("config", "diff.submodule", "diff")
    small.git("config", "submodule.recurse", "true")
    subprocess.run(["git", "-C", str(small.path), "show"], check=False, capture_output=True)
    assert shown.exists(), "without care a program of the submodule's runs"
    shown.unlink()
    head = small.git("rev-parse", "HEAD").strip()
    assert touched_functions(small.path, head) == frozenset()
    Repository(small.path).run("diff", "HEAD^", "HEAD")
    Repository(small.path).run("log", "-p", "-1")
    assert not shown.exists()


def test_what_an_included_file_names_is_not_run_either(
    small: SmallGit, attack: tuple[str, Path], tmp_path: Path
) -> None:
    program, shown = attack
    included = tmp_path / "included"
    included.write_text(
        f"[core]\n\tfsmonitor = {program}\n\tpager = {program}\n\teditor = {program}\n"
        f"[pager]\n\tlog = {program}\n[diff]\n\texternal = {program}\n[alias]\n\tstatus = !{program}\n"
    )
    small.git("config", "include.path", str(included))
    small.git("config", f"includeIf.gitdir:{small.path}/.path", str(included))
    subprocess.run(["git", "-C", str(small.path), "status"], check=False, capture_output=True)
    assert shown.exists(), "without care it runs"
    shown.unlink()
    assert GitSource(small.path).notes() == ()
    Repository(small.path).run("log", "-p", "-1")
    assert not shown.exists()


# --- a repository of another owner --------------------------------------------------------------------------


@pytest.fixture
def foreign(small: SmallGit, monkeypatch: pytest.MonkeyPatch) -> SmallGit:
    """A repository of another user; nobody is trusted yet."""
    monkeypatch.setattr(repository, "_trusted", set())
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.delenv("SUDO_UID", raising=False)
    try:
        subprocess.run(["chown", "-R", "12345:12345", str(small.path)], check=True, capture_output=True)
    except subprocess.CalledProcessError:
        pytest.skip("only root can give files away")
    return small


def test_a_repository_of_another_user_is_refused_in_git_s_words(foreign: SmallGit) -> None:
    with pytest.raises(RequestError, match="belongs to another user") as error:
        GitSource(foreign.path / "kernel")
    assert "dubious ownership" in error.value.details
    assert "--trust-repo" in error.value.cure


def test_it_is_read_where_git_itself_would_read_it(
    foreign: SmallGit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", "12345")  # root by sudo may read what is the user's own
    assert GitSource(foreign.path).resolve("b") == foreign.ids["b"]


@pytest.mark.parametrize("inside", ["", "kernel", ".git", "kernel/fork.c"])
def test_a_trusted_repository_is_read_and_no_other(foreign: SmallGit, tmp_path: Path, inside: str) -> None:
    other = SmallGit(tmp_path / "other").make("z\n")
    subprocess.run(["chown", "-R", "12345", str(other.path)], check=True)
    repository.trust(foreign.path / inside)
    source = GitSource(foreign.path / inside)
    assert source.resolve("b") == foreign.ids["b"]
    assert source.path == foreign.path
    with pytest.raises(RequestError, match="belongs to another user"):
        GitSource(other.path)


def test_a_bare_repository_and_a_linked_tree_can_be_trusted(foreign: SmallGit, tmp_path: Path) -> None:
    bare, linked = tmp_path / "bare.git", tmp_path / "linked"
    subprocess.run(["chown", "-R", "0", str(foreign.path)], check=True)
    foreign.git("clone", "--quiet", "--bare", str(foreign.path), str(bare))
    foreign.git("worktree", "add", "--quiet", "--detach", str(linked), "b")
    subprocess.run(["chown", "-R", "12345", str(foreign.path), str(bare), str(linked)], check=True)
    for path in (bare, linked):
        with pytest.raises(RequestError, match="belongs to another user"):
            GitSource(path)
        repository.trust(path)
        assert GitSource(path).resolve("b") == foreign.ids["b"]


def test_trusting_what_is_no_repository_changes_nothing(tmp_path: Path) -> None:
    repository.trust(tmp_path)
    with pytest.raises(RequestError, match="is not in a git repository"):
        GitSource(tmp_path)


def test_paths_outside_of_the_repository_are_a_wrong_request(small: SmallGit) -> None:
    source = GitSource(small.path)
    with pytest.raises(RequestError, match="a path is not one of the repository") as error:
        source.graph(small.ids["a"], small.ids["c"], paths=["../elsewhere"])
    assert "outside repository" in error.value.details


@pytest.mark.parametrize("name", ["^a", "-a", "", "--all", "a..b", "^a^{commit}"])
def test_what_names_no_single_commit_is_a_wrong_request(small: SmallGit, name: str) -> None:
    with pytest.raises(RequestError, match=r"is not the name of a commit|names no commit"):
        GitSource(small.path).resolve(name)
    assert Repository(small.path).resolve(name) is None


def test_a_command_in_a_folder_that_was_removed_works(small: SmallGit, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    before = Path.cwd()
    os.chdir(gone)
    gone.rmdir()
    try:
        assert GitSource(small.path).resolve("b") == small.ids["b"]
    finally:
        os.chdir(before)


# --- the environment ----------------------------------------------------------------------------------------


def test_variables_that_lead_elsewhere_are_removed(
    small: SmallGit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = SmallGit(tmp_path / "other").make("z\n")
    for name, value in {
        "GIT_DIR": other.path / ".git",
        "GIT_WORK_TREE": other.path,
        "GIT_INDEX_FILE": tmp_path / "index",
        "GIT_OBJECT_DIRECTORY": other.path / ".git" / "objects",
        "GIT_EXTERNAL_DIFF": "/bin/false",
        "GIT_CONFIG_PARAMETERS": "'core.bare=true'",
        "LC_ALL": "de_DE.UTF-8",
    }.items():
        monkeypatch.setenv(name, str(value))
    found = find_repository(small.path)
    assert (found.top, found.bare) == (small.path, False)
    repository = Repository(small.path)
    assert repository.run("log", "-1", "--format=%s").output == "change c\n"
    assert repository.count_uncommitted() == 0
    monkeypatch.setenv("GIT_EDITOR", "the user's")
    words = repository.run("var", "GIT_EDITOR", env={"GIT_EDITOR": "added"}).output
    assert words == "added\n"


def test_the_user_s_own_variables_do_not_take_away_what_keeps_git_safe(
    small: SmallGit, attack: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, shown = attack
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "ext")
    small.git("config", "protocol.ext.allow", "always")
    with pytest.raises(InfrastructureError, match="git cannot read"):
        Repository(small.path).run("ls-remote", f"ext::{program} x")
    assert not shown.exists()


# --- where a repository is ----------------------------------------------------------------------------------


def test_a_repository_is_found_from_any_folder_of_it(small: SmallGit, tmp_path: Path) -> None:
    small.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"), "b")
    small.git("clone", "--quiet", "--bare", str(small.path), str(tmp_path / "bare.git"))
    git_folder = small.path / ".git"
    found = {
        path: find_repository(path)
        for path in (small.path, small.path / "kernel", small.path / "kernel" / "fork.c", git_folder)
    }
    assert {(f.top, f.common, f.bare) for f in found.values()} == {(small.path, git_folder, False)}
    linked, bare = find_repository(tmp_path / "linked"), find_repository(tmp_path / "bare.git")
    assert (linked.top, linked.common, linked.bare) == (tmp_path / "linked", git_folder, False)
    assert (bare.top, bare.bare) == (tmp_path / "bare.git", True)
    assert Repository(small.path / "kernel").objects() == git_folder / "objects"


def test_no_folder_and_no_repository_are_wrong_requests(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="there is no folder"):
        find_repository(tmp_path / "nowhere")
    with pytest.raises(RequestError, match="is not in a git repository") as error:
        find_repository(tmp_path)
    assert error.value.details == "", "git's own words would say the same again"


@pytest.mark.parametrize("refused", [find_repository, repository.trust])
def test_a_path_that_cannot_be_looked_at_is_a_wrong_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Callable[[Path], object]
) -> None:
    (tmp_path / "file").touch()
    for path, reason in {
        tmp_path / ("n" * 300): "cannot be read: File name too long",
        tmp_path / "a\0b": "cannot be read: no folder can have that name",
        tmp_path / "file" / "linux": "there is no folder",
    }.items():
        with pytest.raises(RequestError, match=reason) as error:
            refused(path)
        assert "--repo" in error.value.cure

    def closed(path: Path, **options: bool) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", closed)
    with pytest.raises(RequestError, match="cannot be read: Permission denied"):
        refused(tmp_path / "linux")


@pytest.mark.parametrize("refused", [find_repository, repository.trust])
@pytest.mark.parametrize("bare", [False, True])
def test_a_path_with_a_line_break_is_a_wrong_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Callable[[Path], object], bare: bool
) -> None:
    monkeypatch.setattr(repository, "_trusted", set())
    small = SmallGit(tmp_path / "lin\nux").make("a\n")
    if bare:
        small.git("clone", "--quiet", "--bare", str(small.path), str(tmp_path / "ba\nre.git"))
    with pytest.raises(RequestError, match="has a line break") as error:
        refused(tmp_path / ("ba\nre.git" if bare else "lin\nux"))
    assert "\n" not in error.value.message
    assert "rename" in error.value.cure
    assert repository._trusted == set(), "no part of the path is trusted"


def test_a_path_that_is_no_text_is_a_wrong_request_also_behind_a_link(tmp_path: Path) -> None:
    folder = SmallGit(tmp_path / "folder-\udcff").make("a").path
    link = tmp_path / "link"
    link.symlink_to(folder)
    with pytest.raises(RequestError, match="is not text in UTF-8"):
        find_repository(link)


def test_ids_in_sha256_are_refused(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", "--object-format=sha256", str(tmp_path)], check=True)
    with pytest.raises(RequestError, match="is a git repository with ids in sha256, not sha1"):
        find_repository(tmp_path)


@pytest.mark.parametrize("name", ["a\rb", "a\x0bb", "a\u2028b", "a\x85b"])
def test_only_a_line_break_of_git_s_divides_its_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(repository, "_trusted", set())
    small = SmallGit(tmp_path / name).make("a\n")
    repository.trust(small.path)
    assert find_repository(small.path).top == small.path
    assert repository._trusted == {str(small.path), str(small.path / ".git")}


def test_a_file_of_the_repository_that_cannot_be_read_is_told(small: SmallGit, tmp_path: Path) -> None:
    source = GitSource(small.path, tmp_path / "cache")
    (small.path / ".git" / "info" / "grafts").mkdir(parents=True)
    with pytest.raises(InfrastructureError, match=r"cannot read .*grafts: Is a directory"):
        source.graph(small.ids["a"], small.ids["c"])
