"""The one door to git: safe options, a fixed environment, a deadline, and git's own reason in every error.

A repository's configuration can name programs, and its objects can be missing so that git asks a server. So
every command gets options that switch these off. A repository of another owner is refused, as git refuses it,
unless the user trusts it (`trust`). `Repository.run` is the only function of perfbisect that starts git.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.git.git_errors import cure_of, refusal
from bisector.errors import InfrastructureError, RequestError
from bisector.schemas.documents.document import shown_path

_SECONDS = 1800.0
"""Deadline of a command. To list what 110,000 commits change takes 8 s of processor time, with a cold page
cache, minutes; packing a whole kernel tree for a remote builder takes a minute or two."""

_OPTIONS = (
    "core.fsmonitor=false",  # a program that 'git status' starts
    "core.hooksPath=/dev/null",
    "log.showSignature=false",  # starts gpg.program
    "core.quotePath=false",
    "diff.ignoreSubmodules=all",  # diff.submodule starts git in another repository, with its configuration
    # What a commit changes, and whether a patch applies, is not a matter of the user's taste.
    "diff.relative=false",
    "diff.noprefix=false",
    "log.showRoot=true",
    "apply.whitespace=nowarn",
    "apply.ignoreWhitespace=no",
)

_NO_DRIVERS = ("--no-ext-diff", "--no-textconv")
"""For commands that compare: no program of diff.external, diff.<driver>.command or diff.<driver>.textconv."""

_COMPARING = frozenset(("diff", "diff-tree", "log"))

_KEPT_VARIABLES = frozenset(
    f"GIT_{name}"
    for name in ("CEILING_DIRECTORIES", "CONFIG_GLOBAL", "CONFIG_NOSYSTEM", "CONFIG_SYSTEM", "EXEC_PATH")
)
"""Variables that say where git and the user's configuration are. All others are removed: those that a hook
sets (GIT_DIR, GIT_WORK_TREE, GIT_INDEX_FILE, ...) lead to another repository."""

_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    # No transport at all, whatever protocol.*.allow says. In a partial clone git fetches what is missing by
    # itself, and for that would run remote.*.uploadpack, core.sshCommand, core.gitProxy or credential.helper.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",  # says so more clearly, from git 2.44 on
}
"""Messages in English, no questions, no network, and the user's index is not even refreshed."""

_FATAL = 128
"""git's exit code where it gives up: `die` in its usage.c."""

_DAMAGE = re.compile(
    r"^(?:error: (?:failed to read|unable to unpack) .+|fatal: .+(?:: bad file| is corrupt))$", re.MULTILINE
)
"""What git says of an object that is damaged, or gone though others name it: in its cat-file.c, object-file.c
and apply.c. That is kept apart from a commit that lacks a file, and from a patch that does not apply."""

_REASON_CHARACTERS = 4000
"""Last characters of git's standard error that an error quotes."""

_CURE = "name a kernel tree with --repo"

_trusted: set[str] = set()
"""Folders of repositories that the user trusts whoever owns them, as values of git's safe.directory."""


@dataclass(frozen=True, slots=True)
class GitResult:
    """A finished git command. output: bytes that are not UTF-8 are surrogates; error: standard error."""

    code: int
    output: str
    error: str


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository, named by any folder in it, or by its own folder if it is bare."""

    folder: Path

    def run(
        self,
        *arguments: str,
        codes: Collection[int] = (0,),
        silent_codes: Collection[int] = (),
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        timeout: float = _SECONDS,
    ) -> GitResult:
        """Run a git command in the repository.

        codes: exit codes that are answers; silent_codes: those that are answers if git gives no reason;
        env: added to the fixed environment.
        Raises RequestError for a repository of another owner that is not trusted, a partial clone that lacks
        what is asked for, and paths outside of the repository; InfrastructureError for any other exit code,
        where an object cannot be read, after `timeout` seconds, and where git is missing.
        """
        try:  # a late import: it fails where git is not installed
            from git.cmd import Git
            from git.exc import GitCommandNotFound
        except ImportError as error:
            raise _git_is_missing() from error
        trusted = (f"safe.directory={folder}" for folder in sorted(_trusted))
        options = [word for option in (*_OPTIONS, *trusted) for word in ("-c", option)]
        name, *rest = arguments
        words = [name, *(_NO_DRIVERS if name in _COMPARING else ()), *rest]
        place = ("--no-pager", "-C", str(self.folder.absolute()))
        environment = {**_ENVIRONMENT, **(env or {})}
        command = [*_without_variables(environment), "git", *options, *place, *words]
        with tempfile.TemporaryFile() as file:
            file.write(stdin.encode("utf-8", "surrogateescape"))
            file.seek(0)
            try:
                code, output, reason = Git("/").execute(
                    command,
                    istream=file,
                    env=environment,
                    kill_after_timeout=timeout,
                    with_extended_output=True,
                    with_exceptions=False,
                    stdout_as_string=False,
                    strip_newline_in_stdout=False,
                )
            except GitCommandNotFound as missing:
                raise _git_is_missing() from missing
        if code == _FATAL and (refused := refusal(self.folder, reason)) is not None:
            raise refused
        damaged = code != 0 and _DAMAGE.search(reason) is not None
        if damaged or (code not in codes and (reason or code not in silent_codes)):
            late = code < 0 and reason.startswith("Timeout:")
            raise InfrastructureError(
                f"'git {arguments[0]}' did not end within {timeout:.0f} s"
                if late
                else f"git cannot read the repository {self.folder}",
                details=f"git {' '.join(arguments)}\n{reason[-_REASON_CHARACTERS:]}".rstrip(),
                cure="" if late else cure_of(self.folder, reason),
            )
        return GitResult(code, output.decode("utf-8", "surrogateescape"), reason)

    def resolve(self, rev: str, kind: str = "commit") -> str | None:
        """Return the full id of what a name stands for, a commit (or kind 'tree': its tree); None if none."""
        if not rev or rev.startswith(("-", "^")):  # '^v6.1' stands for all that is not in v6.1
            return None
        name = ("--verify", "--quiet", "--end-of-options", f"{rev}^{{{kind}}}")
        done = self.run("rev-parse", *name, codes=(0, 1, _FATAL))
        return done.output.strip() if done.code == 0 else None

    def objects(self) -> Path:
        """Return the folder in which git finds the repository's objects."""
        done = self.run("rev-parse", "--path-format=absolute", "--git-path", "objects")
        return Path(done.output.rstrip("\n"))

    def count_uncommitted(self) -> int:
        """Return how many files differ from the last commit. Raises InfrastructureError without a work tree.

        Files are compared without the filters that the repository's configuration may name (git-lfs's, or an
        attacker's program).
        """
        keys = self.run("config", "--null", "--name-only", "--get-regexp", r"^filter\.", codes=(0, 1)).output
        drivers = {key.removeprefix("filter.").rpartition(".")[0] for key in keys.split("\0") if key}
        values = {"clean": "", "process": "", "required": "false"}
        settings = [(f"filter.{name}.{key}", value) for name in drivers for key, value in values.items()]
        env = {"GIT_CONFIG_COUNT": str(len(settings))}
        for number, (key, value) in enumerate(settings):
            env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        options = ("--porcelain", "--untracked-files=no", "--ignore-submodules=all")
        return len(self.run("status", *options, env=env).output.splitlines())


@dataclass(frozen=True, slots=True)
class RepositoryFolders:
    """Where the parts of a repository are. top: of the work tree, or the folder of a bare repository."""

    top: Path
    common: Path
    bare: bool


def find_repository(path: Path) -> RepositoryFolders:
    """Return where the repository is that holds a folder. Raises RequestError if there is none, or no git."""
    if shutil.which("git") is None:  # at the start of a command: later it is the machine's failure
        missing = _git_is_missing()
        raise RequestError(missing.message, cure=missing.cure)
    folder = _folder_of(path)
    ask = ("rev-parse", "--path-format=absolute")
    flags = ("--is-bare-repository", "--is-inside-work-tree", "--absolute-git-dir", "--git-common-dir")
    repository = Repository(folder)
    done = repository.run(*ask, *flags, "--show-object-format", codes=(0, _FATAL))
    if done.code != 0:
        reason = "" if "not a git repository" in done.error else done.error
        raise RequestError(f"{shown_path(path)} is not in a git repository", details=reason, cure=_CURE)
    bare, inside, git_dir, common, format_ = _lines(done.output, path, 5)
    if format_ != "sha1":  # builders keep objects of one format, and every kernel is published in this one
        raise RequestError(
            f"{shown_path(path)} is a git repository with ids in {format_}, not sha1", cure=_CURE
        )
    if inside == "true":
        top = Path(_lines(repository.run(*ask, "--show-toplevel").output, path, 1)[0])
    else:
        top = Path(git_dir).parent if Path(git_dir).name == ".git" else Path(git_dir)
    return RepositoryFolders(top, Path(common), bare == "true")


def _folder_of(path: Path) -> Path:
    """Return a folder, or that of a file. Raises RequestError where it cannot be read."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise RequestError(f"there is no folder {shown_path(path)}", cure=_CURE) from error
    except (OSError, ValueError) as error:  # a folder above it is closed; no file can have that name
        reason = getattr(error, "strerror", None) or "no folder can have that name"
        raise RequestError(f"{shown_path(path)} cannot be read: {reason}", cure=_CURE) from error
    return path if stat.S_ISDIR(mode) else path.parent


def _lines(output: str, path: Path, *counts: int) -> list[str]:
    """Return the lines of an answer about a repository. Raises RequestError for another number of them.

    Each is a path or a word. git does not quote paths, so that one with a line break gives too many lines. A
    path that is not UTF-8 is refused as well, since builders and alternates need it as text.
    """
    if any("\ud800" <= character <= "\udfff" for character in output):
        raise RequestError(
            f"the path of the repository at {shown_path(path)} is not text in UTF-8",
            cure="give all its folders names in UTF-8; a link to it does not help",
        )
    lines = output.split("\n")[:-1]
    if len(lines) not in counts:
        raise RequestError(
            f"the path of the repository at {shown_path(path)} has a line break, which git's answers hide",
            cure="rename the folder that has it in its name",
        )
    return lines


def trust(path: Path) -> None:
    """Have the repository that holds a folder read whoever owns it, as long as this process lives.

    Nothing is done where there is none. What the repository names is not run even then. Raises RequestError
    for a path that is no folder, or has a line break.
    """
    anyone = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    ask = ("rev-parse", "--absolute-git-dir", "--show-toplevel")  # the second fails outside of a work tree
    done = Repository(_folder_of(path)).run(*ask, codes=(0, _FATAL), env=anyone)
    folders = _lines(done.output, path, *((2,) if done.code == 0 else (0, 1)))
    _trusted.update(folders)
    _trusted.update(str(Path(folder).parent) for folder in folders if Path(folder).name == ".git")


def _without_variables(given: Mapping[str, str]) -> list[str]:
    """Return the words before a git command that remove variables: GitPython can only add some.

    given: those that are added, and must stay whoever else has set them.
    """
    names = [
        name
        for name in os.environ
        if name.startswith("GIT_") and not name.startswith("GIT_PYTHON_") and name not in _KEPT_VARIABLES
        if name not in given
    ]
    return ["env", *(word for name in names for word in ("-u", name))] if names else []


def _git_is_missing() -> InfrastructureError:
    return InfrastructureError(
        "the program 'git' is not installed", cure="run 'perfbisect doctor' to see what is missing"
    )
