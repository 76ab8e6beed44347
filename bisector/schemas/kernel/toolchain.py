"""Compilers of kernels: rows of `kernels/toolchains.toml`, and the scripts (shims) that call a compiler.

A recipe names one toolchain for all of its kernels. A compiler that changed in the middle of a range would
change the performance without a commit.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from bisector.errors import RequestError, SourceFailed, nearest
from bisector.schemas.documents.document import shown
from bisector.schemas.kernel.release import NamedRow, Release, load_table
from bisector.schemas.loading import Argument, Distinct, Spec, matching
from bisector.schemas.refusal import WrongKeyError

Driver = Literal["tuxmake", "make"]


class Archive(Spec):
    """A toolchain as one file of the mirror that the settings name (`toolchain_mirror`)."""

    described_in = "kernels/README.md"

    file: Argument = Field(
        min_length=1, description="its path below the mirror: .tar, .tar.gz, .tar.xz, .tar.bz2"
    )
    sha256: Annotated[str, matching(r"[0-9a-f]{64}", "64 hex digits")] = Field(description="of the file")
    bin: Argument = Field(default="bin", description="the folder in it that holds the programs")

    @field_validator("file", "bin")
    @classmethod
    def _below(cls, value: str) -> str:
        if value.startswith("/") or ".." in value.split("/"):
            raise ValueError(f"{shown(value)} must be a relative path without '..'")
        return value


_IMAGE = re.compile(r"[a-z0-9][a-zA-Z0-9._:/-]*@sha256:[0-9a-f]{64}")


class Toolchain(NamedRow):
    """One compiler and its arguments for the trees of a range."""

    compiler: Argument = Field(min_length=1, description="command or path on the builder")
    package: Argument = Field(default="", description="the Debian packages that have it")
    archive: Archive | None = Field(default=None, description="its archive, if it is not a package")
    container: Argument = Field(
        default="", description="its image, NAME@sha256:..., with everything else that a build needs"
    )
    family: Literal["gcc", "clang"] = Field(default="gcc", description="as tuxmake calls it")
    driver: Driver = Field(default="tuxmake", description="tuxmake needs a tree with olddefconfig (v3.7)")
    cross: Argument = Field(
        default="", description="prefix of the binutils of another architecture (CROSS_COMPILE)"
    )
    pretend: Annotated[str, matching(r"([0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3})?", "a version such as 4.4.7")] = (
        Field(default="", description="the version of gcc that headers see")
    )
    before_flags: tuple[Argument, ...] = Field(
        default=(), description="before the tree's own arguments, which override them"
    )
    after_flags: tuple[Argument, ...] = Field(
        default=(), description="after the tree's arguments, which they override"
    )
    drop: Distinct[Argument] = Field(default=(), description="arguments that are left out")
    swap: dict[Argument, Argument] = Field(
        default_factory=dict, description="one or two arguments -> what they become"
    )
    host_flags: tuple[Argument, ...] = Field(default=(), description="for programs that run on the builder")
    why: str = Field(default="", description="the reason, for readers")

    @field_validator("container")
    @classmethod
    def _by_digest(cls, value: str) -> str:
        if value and not _IMAGE.fullmatch(value):
            raise ValueError(
                f"{shown(value)} must be NAME@sha256: and 64 hex digits: what a tag names may change"
            )
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.container and (self.archive or self.package):
            raise WrongKeyError(
                "it stands alone: a compiler in an image is no 'package' and no 'archive'", "container"
            )
        if self.container and self.driver != "make":
            raise WrongKeyError("'container' needs driver = \"make\": tuxmake is not in the image", "driver")
        if (self.shimmed or self.host_flags) and self.driver != "make":
            raise WrongKeyError('flags need driver = "make": tuxmake calls the compiler itself', "driver")
        return self

    @field_validator("swap")
    @classmethod
    def _one_or_two(cls, value: dict[str, str]) -> dict[str, str]:
        for key in value:
            if len(key.split()) not in (1, 2):
                raise ValueError(f"{shown(key)} must be one or two arguments")
        return value

    @property
    def identity(self) -> str:
        """The command with the archive or image that it is in: unique on a builder."""
        inside = self.archive.sha256 if self.archive else self.container.partition("@sha256:")[2]
        return f"{self.compiler}-{inside[:12]}" if inside else self.compiler

    @property
    def programs(self) -> str:
        """The folder of its programs below a builder's own folder; empty if they are in the PATH."""
        return f"toolchains/{self.archive.sha256}/{self.archive.bin}" if self.archive else ""

    @property
    def origin(self) -> str:
        """Where it comes from, in words; empty if all that is known is its command."""
        if self.container:
            return f"in the image {self.container}"
        if self.archive:
            return f"from the archive {self.archive.file}"
        return f"from the Debian package {self.package}" if self.package else ""

    @property
    def shimmed(self) -> bool:
        """Whether the compiler is called through a shim."""
        return bool(self.pretend or self.before_flags or self.after_flags or self.drop or self.swap)

    def shim(self) -> str:
        """Return a shell script (POSIX) to be called in place of the compiler; '' if none is needed.

        It reads PB_CCACHE (a prefix for compilations) and PB_EXTRA_FLAGS (flags that override all others).
        """
        if not self.shimmed:
            return ""
        before = [*_version_macros(self.pretend), *self.before_flags]
        return _shim_script(self.compiler, self._arguments(), before, self.after_flags)

    def host_shim(self) -> str:
        """Return the same for programs that run on the builder."""
        return _shim_script(self.compiler, "", (), self.host_flags, extra=False) if self.host_flags else ""

    def _arguments(self) -> str:
        """Return the loop over the arguments: it takes each from the front and appends what becomes of it."""
        if not (self.drop or self.swap):
            return ""
        pairs: dict[str, list[tuple[str, str]]] = {}
        cases = [f"        {shlex.quote(word)}) ;;" for word in self.drop]
        for key, new in self.swap.items():
            words = key.split()
            if len(words) == 2:
                pairs.setdefault(words[0], []).append((words[1], new))
            else:
                cases.append(f'        {shlex.quote(key)}) set -- "$@" {shlex.quote(new)} ;;')
        for first, seconds in pairs.items():
            inner = "".join(
                f'{shlex.quote(second)}) shift; n=$((n - 1)); set -- "$@" {shlex.quote(new)} ;; '
                for second, new in seconds
            )
            cases.append(f'        {shlex.quote(first)}) case $1 in {inner}*) set -- "$@" "$word" ;; esac ;;')
        cases.append('        *) set -- "$@" "$word" ;;')
        loop = ["n=$#", "while [ $n -gt 0 ]; do", "    word=$1; shift; n=$((n - 1))", "    case $word in"]
        return "\n".join([*loop, *cases, "    esac", "done"]) + "\n"


class Unbuildable(NamedRow):
    """Releases that no known toolchain builds or boots, and why."""

    reason: str = Field(min_length=1, description="what goes wrong")


class Toolchains(Spec):
    """The TOML file; without one, the compilers of the builder's PATH."""

    described_in = "kernels/README.md"

    toolchain: tuple[Toolchain, ...] = Field(
        default=(
            Toolchain(name="gcc", compiler="gcc"),
            Toolchain(name="clang", compiler="clang", family="clang"),
        ),
        min_length=1,
        description="compilers, a row each",
    )
    unbuildable: tuple[Unbuildable, ...] = Field(default=(), description="ranges that no compiler builds")


def load_toolchains(kernels: Path | None = None) -> Toolchains:
    """Read `toolchains.toml` of a `kernels` folder (default: the shipped one). Raises RequestError."""
    return load_table(kernels, "toolchains.toml", Toolchains)


def toolchain_for(table: Toolchains, name: str, release: Release, where: str) -> Toolchain:
    """Return the row of a toolchain that covers a release. where: names the commit in errors.

    Raises RequestError for a name that no row has, SourceFailed if no row covers the release.
    """
    rows = [row for row in table.toolchain if row.name == name]
    if not rows:
        known = sorted({row.name for row in table.toolchain})
        raise RequestError(
            f"there is no toolchain '{name}'{nearest(name, known)}",
            details=f"toolchains: {', '.join(known)}",
            cure="name one of them as 'toolchain' in the recipe, or add a row to kernels/toolchains.toml",
        )
    for broken in table.unbuildable:
        if broken.covers(release):
            raise SourceFailed(
                f"{where} ({release}) cannot be built: {broken.reason}",
                details=f"kernels/toolchains.toml: the row '{broken.name}', {broken.range}",
                cure="choose an end outside of that range",
            )
    for row in rows:
        if row.covers(release):
            return row
    raise SourceFailed(
        f"the toolchain '{name}' does not build {where} ({release})",
        details="\n".join(f"{name}: {row.range}" for row in rows),
        cure="name another recipe with --recipe, or add a row to kernels/toolchains.toml",
    )


def _version_macros(version: str) -> list[str]:
    if not version:
        return []
    parts = zip(("__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__"), version.split("."), strict=True)
    return [word for name, number in parts for word in (f"-U{name}", f"-D{name}={number}")]


def _shim_script(
    compiler: str, loop: str, before: Sequence[str], after: Sequence[str], *, extra: bool = True
) -> str:
    # A query for the version gets the compiler's own answer, because trees write it into the kernel.
    plain = f'case " $* " in *" -v "*|*" --version "*) exec {shlex.quote(compiler)} "$@" ;; esac\n'
    words = ["exec", "$PB_CCACHE", shlex.quote(compiler), shlex.join(before), '"$@"', shlex.join(after)]
    words += ["$PB_EXTRA_FLAGS"] if extra else []
    return "#!/bin/sh\n" + plain + loop + " ".join(filter(None, words)) + "\n"
