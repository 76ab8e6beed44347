"""Failed builds: whether the commit or the machine failed, why, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.build.log import excerpt, judge, without_folder
from bisector.errors import (
    BuilderUnwell,
    BuildFailed,
    BuildUnexplained,
    InfrastructureError,
    PerfbisectError,
    SourceFailed,
)
from bisector.schemas.kernel.build_plan import BuildPlan, option_of_line

_FREE_KILOBYTES_MIN = 64 * 1024
"""A builder with less than 64 MiB left after a failed build had no room, whatever the compiler reported."""

_MESSAGE_LINE_CHARACTERS = 160
"""Characters of the line that names the cause: messages of compilers are longer only where they quote
generated code."""

_REFUSED_PREFIX = "required option not granted: "


@dataclass(frozen=True, slots=True)
class FailedBuild:
    """One failed build. facts: what the builder's script printed; log: text; log_path: where it is kept."""

    commit: str
    host: str
    plan: BuildPlan
    facts: Mapping[str, str]
    log: str
    log_path: Path

    def error(self, defines: Callable[[str], bool]) -> PerfbisectError:
        """Return the error: SourceFailed or BuildFailed (the commit), BuildUnexplained (the commit, if it
        fails again), InfrastructureError (the builder).

        defines: whether any Kconfig file of the tree defines an option (named without CONFIG_).
        """
        match self.facts.get("status", ""):
            case "not-linux":
                return SourceFailed(
                    f"{self.commit} holds no Linux kernel", details="its tree has no Makefile and Kbuild"
                )
            case "refused":
                return self._explain_refused_options(defines)
            case "timed-out":
                return InfrastructureError(
                    f"building {self.commit} on '{self.host}' took too long, and was ended there",
                    details=f"{self.log.rstrip().rpartition(chr(10))[2]}\n{self._where}",
                    cure="the builder was slow, or a program of the commit hangs, which the log's end tells; "
                    "'perfbisect mark ID COMMIT skip' leaves the commit out",
                )
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
                return self._explain_broken_build()

    @property
    def _where(self) -> str:
        return f"log: {self.log_path}"

    def _explain_refused_options(self, defines: Callable[[str], bool]) -> BuildFailed:
        recipe = self.plan.recipe
        lines = [line for line in self.log.splitlines() if line.startswith(_REFUSED_PREFIX)]
        names = [line.removeprefix(_REFUSED_PREFIX).split("|") for line in lines]
        options = ", ".join(alternatives[0] for alternatives in names)
        unknown = [
            option_of_line(alternatives[0])
            for alternatives in names
            if not any(defines(option_of_line(line)) for line in alternatives)
        ]
        details = self._where
        cure = f"make it 'wanted' in {recipe.path} if kernels without it may be compared"
        if unknown:
            reason = f"no Kconfig file of this tree ({self.plan.release}) defines {', '.join(unknown)}"
            details = f"{reason}\n{details}"
            cure = (
                f"mend the name in the fragments of {recipe.path}, or say in "
                f"{recipe.path.parent.parent / 'options.toml'} since which release it exists"
            )
        return BuildFailed(
            f"{self.commit} does not grant what the recipe '{recipe.name}' requires: {options}",
            details=details,
            cure=cure,
        )

    def _explain_broken_build(self) -> PerfbisectError:
        failure = judge(self.log)
        room = int(self.facts.get("free_kb") or _FREE_KILOBYTES_MIN)
        if failure.blame == "infrastructure" or room < _FREE_KILOBYTES_MIN:
            full = failure.blame == "kernel" or "disk is full" in failure.what
            what = "the disk is full" if full else failure.what
            kind = BuilderUnwell if full else InfrastructureError
            return kind(
                f"building {self.commit} on '{self.host}' failed: {what}",
                details=f"{failure.line}\n{self._where}",
                cure="free some space there" if full else "run 'perfbisect doctor'",
            )
        first_error = f": {without_folder(failure.line)[:_MESSAGE_LINE_CHARACTERS]}" if failure.line else ""
        broken = BuildFailed if failure.certain else BuildUnexplained
        return broken(
            f"{self.commit} does not build: {failure.what}{first_error}",
            details=f"{excerpt(self.log, failure.line)}\n{self._where}",
        )
