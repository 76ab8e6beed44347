"""The one door to git: safe options, a fixed environment, a deadline, and git's own reason in every error.

A repository is read whoever owns it, and its configuration can name programs. So every command is given
options that switch these off. `Repository.run` is the only function of perfbisect that starts git.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from bisector.errors import InfrastructureError, RequestError

_SECONDS = 1800.0
"""Deadline of a command. To list what 110,000 commits change takes 8 s of processor time, with a cold page
cache, minutes; packing a whole kernel tree for a remote builder takes a minute or two."""

_OPTIONS = (
    "core.fsmonitor=false",  # a program that 'git status' starts
    "core.hooksPath=/dev/null",
    "log.showSignature=false",  # starts gpg.program
    "protocol.ext.allow=never",  # a remote that is a command
    "core.quotePath=false",
    "safe.directory=*",  # another user's repository may be read
)

_KEPT_VARIABLES = frozenset(
    f"GIT_{name}"
    for name in ("CEILING_DIRECTORIES", "CONFIG_GLOBAL", "CONFIG_NOSYSTEM", "CONFIG_SYSTEM", "EXEC_PATH")
)
"""Variables that say where git and the user's configuration are. All others are removed: those that a hook
sets (GIT_DIR, GIT_WORK_TREE, GIT_INDEX_FILE, ...) lead to another repository."""

_ENVIRONMENT = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
"""Messages in English, no questions, and the user's index is not even refreshed."""

_REASON_CHARACTERS = 4000
"""Last characters of git's standard error that an error quotes."""


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
        Raises InfrastructureError for any other exit code, after `timeout` seconds, and where git is missing.
        """
        try:  # a late import: it fails where git is not installed
            from git.cmd import Git
            from git.exc import GitCommandNotFound
        except ImportError as error:
            raise _git_is_missing() from error
        options = [word for option in _OPTIONS for word in ("-c", option)]
        command = [*_without_variables(), "git", *options, "-C", str(self.folder), *arguments]
        with tempfile.TemporaryFile() as file:
            file.write(stdin.encode("utf-8", "surrogateescape"))
            file.seek(0)
            try:
                code, output, reason = Git().execute(
                    command,
                    istream=file,
                    env={**_ENVIRONMENT, **(env or {})},
                    kill_after_timeout=timeout,
                    with_extended_output=True,
                    with_exceptions=False,
                    stdout_as_string=False,
                    strip_newline_in_stdout=False,
                )
            except GitCommandNotFound as missing:
                raise _git_is_missing() from missing
        if code not in codes and (reason or code not in silent_codes):
            late = code < 0 and reason.startswith("Timeout:")
            raise InfrastructureError(
                f"'git {arguments[0]}' did not end within {timeout:.0f} s"
                if late
                else f"git cannot read the repository {self.folder}",
                details=f"git {' '.join(arguments)}\n{reason[-_REASON_CHARACTERS:]}".rstrip(),
                cure="" if late else f"see what 'git -C {self.folder} fsck' says",
            )
        return GitResult(code, output.decode("utf-8", "surrogateescape"), reason)

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
    """Return where the repository is that holds a folder. Raises RequestError if there is none."""
    cure = "name a kernel tree with --repo"
    if not path.exists():
        raise RequestError(f"there is no folder {path}", cure=cure)
    ask = ("rev-parse", "--path-format=absolute")
    flags = ("--is-bare-repository", "--is-inside-work-tree", "--absolute-git-dir", "--git-common-dir")
    repository = Repository(path if path.is_dir() else path.parent)
    done = repository.run(*ask, *flags, codes=(0, 128))
    if done.code != 0:
        reason = "" if "not a git repository" in done.error else done.error
        raise RequestError(f"{path} is not in a git repository", details=reason, cure=cure)
    bare, inside, folder, common = done.output.splitlines()
    if inside == "true":
        top = Path(repository.run(*ask, "--show-toplevel").output.rstrip("\n"))
    else:
        top = Path(folder).parent if Path(folder).name == ".git" else Path(folder)
    return RepositoryFolders(top, Path(common), bare == "true")


def _without_variables() -> list[str]:
    """Return the words before a git command that remove variables: GitPython can only add some."""
    names = [
        name
        for name in os.environ
        if name.startswith("GIT_") and not name.startswith("GIT_PYTHON_") and name not in _KEPT_VARIABLES
    ]
    return ["env", *(word for name in names for word in ("-u", name))] if names else []


def _git_is_missing() -> InfrastructureError:
    return InfrastructureError(
        "the program 'git' is not installed", cure="run 'perfbisect doctor' to see what is missing"
    )
