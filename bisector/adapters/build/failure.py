"""What a build that did not end well means: whose fault it is, why, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.build.log import excerpt, judge, without_folder
from bisector.errors import BuildFailed, InfrastructureError, PerfbisectError, SourceFailed
from bisector.schemas.kernel.build_plan import BuildPlan, option_of_line

_KILOBYTES_NEEDED = 64 * 1024
"""A builder with less than 64 MiB left after a failed build had no room, whatever the compiler said."""

_LINE_CHARACTERS = 160
"""Of the line that tells why: messages of compilers are longer only where they quote generated code."""

_REFUSED = "required option not granted: "


@dataclass(frozen=True, slots=True)
class FailedBuild:
    """One failed build. facts: what the builder's script printed; log: text; kept: where the log is."""

    commit: str
    host: str
    plan: BuildPlan
    facts: Mapping[str, str]
    log: str
    kept: Path

    def error(self, defines: Callable[[str], bool]) -> PerfbisectError:
        """Return the error to raise: SourceFailed or BuildFailed (the commit), InfrastructureError (we).

        defines: whether any Kconfig file of the tree defines an option (named without CONFIG_).
        """
        match self.facts.get("status", ""):
            case "not-linux":
                return SourceFailed(
                    f"{self.commit} holds no Linux kernel", details="its tree has no Makefile and Kbuild"
                )
            case "refused":
                return self._refused(defines)
            case "stale":
                return InfrastructureError(
                    f"the image built for {self.commit} held another kernel than the one just linked",
                    details=self._where,
                    cure="its output folder was thrown away; trying again builds it from nothing",
                )
            case "misconfigured":
                return InfrastructureError(
                    f"the kernel built for {self.commit} is not configured as it was asked for",
                    details=f"the end of the log tells the options\n{self._where}",
                    cure="its output folder was thrown away; trying again builds it from nothing",
                )
            case _:
                return self._broken()

    @property
    def _where(self) -> str:
        return f"log: {self.kept}"

    def _refused(self, defines: Callable[[str], bool]) -> BuildFailed:
        recipe = self.plan.recipe
        lines = [line for line in self.log.splitlines() if line.startswith(_REFUSED)]
        names = [line.removeprefix(_REFUSED).split("|") for line in lines]
        options = ", ".join(alternatives[0] for alternatives in names)
        unknown = [
            option_of_line(alternatives[0])
            for alternatives in names
            if not any(defines(option_of_line(line)) for line in alternatives)
        ]
        details, cure = (
            [self._where],
            f"make it 'wanted' in {recipe.path} if kernels without it may be compared",
        )
        if unknown:
            are = f"no Kconfig file of this tree ({self.plan.release}) defines {', '.join(unknown)}"
            details.insert(0, are)
            cure = (
                f"mend the name in the fragments of {recipe.path}, or say in "
                f"{recipe.path.parent.parent / 'options.toml'} since which release it exists"
            )
        return BuildFailed(
            f"{self.commit} does not grant what the recipe '{recipe.name}' requires: {options}",
            details="\n".join(details),
            cure=cure,
        )

    def _broken(self) -> PerfbisectError:
        failure = judge(self.log)
        room = int(self.facts.get("free_kb") or _KILOBYTES_NEEDED)
        if failure.blame == "infrastructure" or room < _KILOBYTES_NEEDED:
            full = failure.blame == "kernel" or "disk is full" in failure.what
            what = "the disk is full" if full else failure.what
            return InfrastructureError(
                f"building {self.commit} on '{self.host}' failed: {what}",
                details=f"{failure.line}\n{self._where}",
                cure="free some space there" if full else "run 'perfbisect doctor'",
            )
        said = f": {without_folder(failure.line)[:_LINE_CHARACTERS]}" if failure.line else ""
        return BuildFailed(
            f"{self.commit} does not build: {failure.what}{said}",
            details=f"{excerpt(self.log, failure.line)}\n{self._where}",
        )
