"""How one commit is built: a recipe, and the rows of `kernels/` that cover the commit's release.

The key of a cached kernel has three parts: the tree with its fixups, the version that the compiler prints,
and `BuildPlan.digest`. The digest covers everything else that can change a kernel, and no comment.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bisector.schemas.kernel.fixup import Fixup, fixups_at, load_fixups
from bisector.schemas.kernel.option_history import OptionAtRelease, OptionRow, load_options, option_at_release
from bisector.schemas.kernel.recipe import Option, Recipe, config_line, load_recipe
from bisector.schemas.kernel.release import Release
from bisector.schemas.kernel.toolchain import Toolchain, Toolchains, load_toolchains, toolchain_for


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a `kernels` folder."""

    toolchains: Toolchains
    fixups: tuple[Fixup, ...]
    options: Mapping[str, OptionRow]

    @classmethod
    def load(cls, kernels: Path | None = None) -> Tables:
        """Read them. Raises RequestError naming file and row."""
        return cls(load_toolchains(kernels), load_fixups(kernels), load_options(kernels))


@dataclass(frozen=True, slots=True)
class PlannedOption:
    """One option of the recipe under the names that a commit of some release may know."""

    option: Option
    at_release: OptionAtRelease

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of a .config that set it, under each of its names."""
        return tuple(config_line(name, self.option.value) for name in self.at_release.names)

    @property
    def required(self) -> bool:
        """Whether the build fails without it."""
        return self.option.status == "required" and self.at_release.expected

    def granted(self, options: Mapping[str, str]) -> bool:
        """Whether an effective configuration (NAME -> value, absent means off) has it."""
        return any(options.get(name, "") == self.option.value for name in self.at_release.names)


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """Everything about the build of a commit except its tree."""

    recipe: Recipe
    release: Release
    toolchain: Toolchain
    fixups: tuple[Fixup, ...]
    options: tuple[PlannedOption, ...]

    @property
    def config(self) -> str:
        """The fragments as one, for the kernel's merge script or for KCONFIG_ALLCONFIG."""
        return "".join(f"{line}\n" for planned in self.options for line in planned.lines)

    @property
    def required(self) -> str:
        """The options that must be granted, one a line, with '|' between the names of one option."""
        return "".join("|".join(planned.lines) + "\n" for planned in self.options if planned.required)

    def not_granted(self, options: Mapping[str, str]) -> tuple[str, ...]:
        """Return the names of wanted options that exist at this age and were not granted."""
        return tuple(
            planned.option.name
            for planned in self.options
            if planned.option.status == "wanted"
            and planned.at_release.expected
            and not planned.granted(options)
        )

    def digest(self, layout: int = 0) -> str:
        """Return a SHA-256 (hex) over everything in the plan that can change a kernel."""
        manifest, toolchain = self.recipe.manifest, self.toolchain
        content = {
            "arch": manifest.arch,
            "base": manifest.base,
            "image": manifest.image,
            "config": self.config,
            "required": self.required,
            "flags": self.recipe.flags(layout),
            "compiler": [toolchain.compiler, toolchain.family, toolchain.driver, toolchain.cross],
            "shims": [toolchain.shim(), toolchain.host_shim()],
        }
        if self.recipe.base:  # its content, not its path
            content["base"] = self.recipe.base
        if manifest.rest != "off":
            content["rest"] = manifest.rest
        if toolchain.archive is not None:  # compilers of two archives may have one name
            content["archive"] = toolchain.archive.sha256
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def make_plan(recipe: Recipe, tables: Tables, release: Release, where: str) -> BuildPlan:
    """Return how a commit of this release is built. where: names the commit in errors.

    Raises RequestError for a toolchain that no row has, SourceFailed if no row covers the commit.
    """
    return BuildPlan(
        recipe=recipe,
        release=release,
        toolchain=toolchain_for(tables.toolchains, recipe.manifest.toolchain, release, where),
        fixups=fixups_at(tables.fixups, release),
        options=tuple(
            PlannedOption(
                option, option_at_release(tables.options, option.name, release, recipe.manifest.arch)
            )
            for option in recipe.options
        ),
    )


def load_plan(recipe: str, release: Release, where: str, kernels: Path | None = None) -> BuildPlan:
    """Read a recipe and the tables, and return the plan for a commit of this release."""
    return make_plan(load_recipe(recipe, kernels), Tables.load(kernels), release, where)


def option_of_line(line: str) -> str:
    """Return the name in such a line, without CONFIG_."""
    return line.removeprefix("# ").removeprefix("CONFIG_").split("=")[0].split(" ")[0]
