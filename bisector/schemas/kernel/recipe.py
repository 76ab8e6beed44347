"""How a commit becomes a kernel: `kernels/recipes/<name>.toml` and the config fragments it names.

`load_recipe` reads a recipe with its fragments and refuses contradictions; `build_plan` applies it to a
commit. A name may add fragments that are required as well: 'x86_64-guest+block' is what a workload with a
block device needs (`with_fragments`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from bisector.errors import RequestError, nearest
from bisector.resources import resource
from bisector.schemas.documents.document import exists, read_document, shortened
from bisector.schemas.kernel.base_config import base_config
from bisector.schemas.kernel.release import Arch, Release, ReleaseRange, SourcePath, Word
from bisector.schemas.loading import Argument, Distinct, load_toml
from bisector.schemas.ranges import Amount

AUTO = "auto"
"""As a recipe's name: one with `auto = true` that covers all commits, see `choose_recipe`."""

DEFAULT_RECIPE = "x86_64-guest"

_SEPARATOR = "+"
"""Separator between a recipe's name and each further fragment."""

Status = Literal["required", "wanted"]

_SET = re.compile(r"CONFIG_(?P<name>[A-Za-z0-9_]+)=(?P<value>\S.*)")
_UNSET = re.compile(r"# CONFIG_(?P<name>[A-Za-z0-9_]+) is not set")


class RecipeManifest(ReleaseRange):
    """The TOML file. Its range says for which releases it is known to work."""

    summary: str = Field(min_length=1, description="one sentence for 'perfbisect kernel list'")
    arch: Arch = Field(description="as tuxmake calls it: x86_64, arm64, riscv64")
    toolchain: Word = Field(default="gcc", description="a name in toolchains.toml")
    userspace: Literal["debian", "initramfs"] = Field(
        default="debian", description="what its kernels can boot into, see kernels/README.md"
    )
    auto: bool = Field(default=False, description="whether it may be chosen when none is named")
    files: Amount | None = Field(
        default=None,
        description="source files of a first build: of several recipes that serve, the least counts",
    )
    takes: Distinct[Word] | None = Field(
        default=None,
        description="fragments with which it may be chosen when none is named; absent: all",
    )
    base: Argument = Field(
        default="tinyconfig",
        min_length=1,
        description="what to start from: a make target, 'running' (this machine's own), or a .config file",
    )
    rest: Literal["off", "default"] = Field(
        default="off", description="the value of options that neither base nor fragments name"
    )
    load: Distinct[Word] = Field(
        default=(), description="modules that guests load from an initramfs before they mount their root"
    )
    image: Distinct[SourcePath] = Field(
        default=("arch/x86/boot/bzImage",),
        min_length=1,
        description="what boots, below the output folder; the first that a tree makes",
    )
    required: Distinct[Word] = Field(
        min_length=1, description="fragments of which every option must be granted, or the build fails"
    )
    wanted: Distinct[Word] = Field(default=(), description="fragments whose refused options are reported")
    layouts: Distinct[Argument] = Field(
        default=(),
        description="compiler flags of layout 1, 2, ...: the same code placed differently in memory",
    )


@dataclass(frozen=True, slots=True)
class Option:
    """One line of a fragment. value: 'y', a number or a quoted text; '' for an option that must be off."""

    name: str
    value: str
    status: Status
    fragment: str
    why: str

    @property
    def line(self) -> str:
        """The option as .config and the kernel's own merge script write it."""
        return config_line(self.name, self.value)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A loaded recipe. options: in the order of the fragments, required ones first.

    base: the lines of a base that is a file or the running machine's configuration, else empty.
    """

    name: str
    path: Path
    manifest: RecipeManifest
    options: tuple[Option, ...]
    base: str = ""

    def flags(self, layout: int) -> str:
        """Return the extra compiler flags of a layout; 0 is the plain one. Raises RequestError if unknown."""
        if layout == 0:
            return ""
        if not 0 < layout <= len(self.manifest.layouts):
            raise RequestError(
                f"the recipe '{self.name}' has no layout {layout} (it has {len(self.manifest.layouts)})",
                cure=f"add compiler flags to 'layouts' in {self.path}",
            )
        return self.manifest.layouts[layout - 1]


def with_fragments(name: str, fragments: Sequence[str]) -> str:
    """Return the name of a recipe with more fragments; the same ones give the same name in any order."""
    base, *there = name.split(_SEPARATOR)
    return _SEPARATOR.join((base, *sorted({*there, *fragments})))


def is_auto(name: str) -> bool:
    """Return whether a name is 'auto', with or without fragments."""
    return name.split(_SEPARATOR)[0] == AUTO


def with_default_recipe(name: str) -> str:
    """Return the name with 'auto' replaced by the default recipe."""
    return with_fragments(DEFAULT_RECIPE, name.split(_SEPARATOR)[1:]) if is_auto(name) else name


def list_recipes(kernels: Path | None = None) -> tuple[str, ...]:
    """Return the names of the recipes in a `kernels` folder (default: the shipped one)."""
    folder = (kernels or resource("kernels")) / "recipes"
    return tuple(sorted(path.stem for path in folder.glob("*.toml")))


def load_recipe(name: str, kernels: Path | None = None) -> Recipe:
    """Read a recipe and its fragments.

    Raises RequestError for an unknown recipe or fragment, a line that is no option, or an option to which two
    lines give different values.
    """
    kernels = kernels or resource("kernels")
    known = list_recipes(kernels)
    base, *more = name.split(_SEPARATOR)
    if base not in known:
        raise RequestError(
            f"unknown recipe '{shortened(base)}'{nearest(base[:200], known)}",
            details=f"known recipes: {', '.join(known)}",
            cure="name one of those",
        )
    path = kernels / "recipes" / f"{base}.toml"
    manifest = load_toml(path, RecipeManifest)
    if more:
        required = tuple(dict.fromkeys((*manifest.required, *more)))
        wanted = tuple(fragment for fragment in manifest.wanted if fragment not in more)
        manifest = manifest.model_copy(update={"required": required, "wanted": wanted})
    options: list[Option] = []
    for fragment in manifest.takes or ():
        _fragment_file(kernels, fragment, path)
    for status, fragments in (("required", manifest.required), ("wanted", manifest.wanted)):
        for fragment in fragments:
            file = _fragment_file(kernels, fragment, f"recipe '{name}'" if fragment in more else path)
            text = read_document(file)
            options += parse_fragment(text, fragment, "required" if status == "required" else "wanted", file)
    _no_contradiction(options, path)
    # Of an option that two fragments ask for, the first counts: required ones come before wanted ones.
    once = {option.name: option for option in reversed(options)}
    asked_for = tuple(option for option in options if option is once[option.name])
    return Recipe(name, path, manifest, asked_for, base_config(manifest.base, kernels / "configs", path))


def _fragment_file(kernels: Path, fragment: str, asked: str | Path) -> Path:
    """Return the path of a fragment. asked: what names it. Raises RequestError if it is not there."""
    file = kernels / "configs" / f"{fragment}.config"
    if not exists(file):
        there = sorted(f.stem for f in file.parent.glob("*.config"))
        raise RequestError(
            f"{asked}: there is no fragment '{shortened(fragment)}'{nearest(fragment[:200], there)}",
            details=f"fragments in {file.parent}: {', '.join(there)}",
            cure="name one of those",
        )
    return file


def resolve_recipe_name(
    name: str,
    releases: Sequence[Release],
    kernels: Path | None = None,
    serves: Callable[[Recipe], bool] | None = None,
) -> str:
    """Return the name with 'auto' replaced by the recipe for commits of these releases.

    serves: see `choose_recipe`. Raises RequestError if none covers them.
    """
    if not is_auto(name):
        return name
    fragments = name.split(_SEPARATOR)[1:]
    return with_fragments(choose_recipe(releases, fragments, kernels=kernels, serves=serves), fragments)


def choose_recipe(
    releases: Sequence[Release],
    fragments: Sequence[str] = (),
    *,
    kernels: Path | None = None,
    serves: Callable[[Recipe], bool] | None = None,
) -> str:
    """Return the recipe with `auto = true` for all of these releases, to which the fragments are added.

    serves: whether a workload can be measured with it; of those that serve, the one that compiles the fewest
    files. Without a workload, or if none serves, the youngest, and of equal ones the one that has most in it.
    Raises RequestError if none covers the releases.
    """
    folder = (kernels or resource("kernels")) / "recipes"
    manifests = {name: load_toml(folder / f"{name}.toml", RecipeManifest) for name in list_recipes(kernels)}
    offered = {name: one for name, one in manifests.items() if one.auto}
    fitting = [name for name, one in offered.items() if all(one.covers(release) for release in releases)]
    if not fitting:
        ages = " and ".join(dict.fromkeys(str(release) for release in sorted(releases)))
        raise RequestError(
            f"no recipe is known to build {ages}",
            details="\n".join(f"{name}: {one.range}" for name, one in offered.items()),
            cure="name the nearest with --recipe to try it all the same",
        )
    if serves is not None:
        takes = {name: offered[name].takes for name in fitting}
        able = [
            name
            for name in fitting
            if set(fragments) <= set(fragments if (known := takes[name]) is None else known)
            and serves(load_recipe(name, kernels))
        ]
        if able:
            return min(able, key=lambda name: offered[name].files or math.inf)
    return max(fitting, key=lambda name: (offered[name].start, offered[name].files or math.inf))


def parse_fragment(text: str, fragment: str, status: Status, file: Path) -> list[Option]:
    """Read a config fragment; the comment above an option (up to an empty line) says why it is there.

    Raises RequestError naming file and line.
    """
    options: list[Option] = []
    why: list[str] = []
    used = False
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        on, off = _SET.fullmatch(line), _UNSET.fullmatch(line)
        if on is not None or off is not None:
            value = on["value"] if on is not None else ""
            name = (on or off)["name"]  # type: ignore[index]  # one of them matched
            options.append(Option(name, "" if value == "n" else value, status, fragment, " ".join(why)))
            used = True
        elif not line:
            why, used = [], False
        elif line.startswith("#"):
            if used:
                why, used = [], False
            why.append(line.lstrip("# ").strip())
        else:
            raise RequestError(
                f"{file}:{number}: '{shortened(line)}' is not an option",
                cure="write 'CONFIG_NAME=y', '# CONFIG_NAME is not set', or a comment",
            )
    return options


def config_line(name: str, value: str) -> str:
    """Return an option as .config and the kernel's own merge script write it."""
    return f"CONFIG_{name}={value}" if value else f"# CONFIG_{name} is not set"


def effective_options(config: str) -> dict[str, str]:
    """Read a .config: NAME -> value; options that are off are left out."""
    return {m["name"]: m["value"] for m in map(_SET.fullmatch, config.splitlines()) if m is not None}


def _no_contradiction(options: Sequence[Option], path: Path) -> None:
    seen: dict[str, Option] = {}
    for option in options:
        first = seen.setdefault(option.name, option)
        if first.value != option.value:
            raise RequestError(
                f"{path}: the fragments '{first.fragment}' and '{option.fragment}' contradict each other",
                details=f"{first.line} ({first.fragment})\n{option.line} ({option.fragment})",
                cure="leave the option to one of them",
            )
