"""The user's request, and its form once it was accepted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from bisector.errors import InfrastructureError
from bisector.model.goal import TERMS, Budget, Find, Goal, Terms
from bisector.schemas import serialization
from bisector.schemas.commit_priors import Priors, PriorsFile
from bisector.schemas.kernel.cpu_model import CpuModel
from bisector.schemas.kernel.listed_kernel import ListedKernel
from bisector.schemas.loading import Spec
from bisector.schemas.ranges import Alpha, Amount, BuildsAhead, Hours
from bisector.schemas.refusal import describe_problems

_NOT_IDENTIFYING = ("good", "bad", "build_ahead", "with_fix", "trust_repo", "priors")
"""Fields that do not identify a bisection: names whose resolved values do, and what decides pace or trust."""

_ADDED_LATER = ("monitors", "param", "find", "run", "higher_is_better", "kernels")
"""Fields that requests did not have from the beginning. Their default keeps the old identity."""


class Request(Spec):
    """One bisection as asked for on the command line. Paths are absolute; hours are hours of lab time.

    `start` and `plan` get an option for each field, in this order: its description is the help, and
    `json_schema_extra` may give the option another name ('option') or metavar, or say that it is a path.
    """

    good: str = Field(
        description="A commit without the regression. [required]", json_schema_extra={"metavar": "REV"}
    )
    bad: str = Field(description="A commit with it. [required]", json_schema_extra={"metavar": "REV"})
    find: Find = Field(
        default="regression",
        description="'fix' finds what made the metric better: then BAD is the older end, and GOOD the newer "
        "one. [default: regression]",
    )
    workload: str = Field(
        default="",
        description="A name, or a folder with a workload.yaml. [required, here or in the settings]",
        json_schema_extra={"metavar": "NAME"},
    )
    run: str = Field(
        default="",
        description="In place of --workload: a command for the testbed's shell. Its time decides, by the "
        "testbed's clock; with --metric NAME the number in its last line 'NAME: 12.5', with --metric number "
        "in a line of its own; with the name of a counter what emulated guests count. A code other than 0, "
        "as git bisect run's 125, makes a commit untestable.",
        json_schema_extra={"metavar": "CMD"},
    )
    higher_is_better: bool = Field(default=False, description="With --run and --metric: more is better.")
    repo: str = Field(
        description="The kernel's git repository. [default: settings, else this folder's]",
        json_schema_extra={"metavar": "FOLDER", "type": "path"},
    )
    kernels: str = Field(
        default="",
        description="In place of commits: a file that names a package (.deb, .rpm) or a kernel's folder in "
        "each line, the oldest first, or a folder of packages. GOOD and BAD are two of them.",
        json_schema_extra={"metavar": "LIST", "type": "path"},
    )
    trust_repo: bool = Field(
        default=False, description="Read the repository even if it belongs to another user."
    )
    param: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="Set a parameter of the workload; a name again makes a list.",
        json_schema_extra={"metavar": "NAME=VALUE"},
    )
    metric: str | None = Field(
        default=None,
        description="Decide by this metric of the manifest, or by what emulated guests count: instructions, "
        "page-faults, LL-misses, modelled-cycles, ... An unknown name lists them all.",
        json_schema_extra={"metavar": "NAME"},
    )
    threshold: str | None = Field(
        default=None,
        description="Smallest change worth blaming: '5%' or '0.1 s'. [default: the manifest's]",
        json_schema_extra={"metavar": "SIZE"},
    )
    alpha: Alpha = Field(
        default=0.05, description="How often a proven culprit may be wrong. [default: settings, 0.05]"
    )
    recipe: str = Field(
        default="x86_64-guest",
        description="How a commit becomes a kernel.",
        json_schema_extra={"metavar": "NAME"},
    )
    testbeds: tuple[str, ...] = Field(
        default=(),
        description="A testbed of the lab; repeat for several. [default: all that fit]",
        json_schema_extra={"metavar": "NAME", "option": "--testbed"},
    )
    skip: tuple[str, ...] = Field(
        default=(),
        description="A commit or range A..B that cannot be tested; repeatable.",
        json_schema_extra={"metavar": "REV"},
    )
    first_parent: bool = Field(default=False, description="Follow only the first parent of merges.")
    priors: PriorsFile = ""
    apply: tuple[str, ...] = Field(
        default=(),
        description="A patch put on top of every commit tested; repeatable.",
        json_schema_extra={"metavar": "FILE", "type": "path"},
    )
    with_fix: tuple[str, ...] = Field(
        default=(),
        description="A known fix, put where the commit that it mends is in and it is not: REV, or REV:GUILTY "
        "where its message has no 'Fixes:' line; repeatable.",
        json_schema_extra={"metavar": "REV"},
    )
    max_hours: Hours | None = Field(default=None, description="Stop after so many hours of lab time.")
    max_builds: Amount | None = Field(default=None, description="Stop after so many builds.")
    max_runs: Amount | None = Field(default=None, description="Stop after so many runs.")
    scan: bool = Field(default=False, description="Search even where the ends do not differ.")
    build_ahead: BuildsAhead = Field(
        default=0,
        description="Build up to so many kernels before a trial asks, while testbeds measure. [default: 0]",
    )
    monitors: tuple[str, ...] = Field(
        default=(),
        description="Watch with perf-stat, perf-record, ftrace, proc or dmesg, in runs of its own; with "
        "counters in the samples of emulated guests; repeatable.",
        json_schema_extra={"option": "--monitor", "metavar": "NAME[=A,B]"},
    )
    paths: tuple[str, ...] = Field(
        default=(),
        description="After --: only commits that touch these paths; inside the tree they start here.",
        json_schema_extra={"metavar": "PATH", "type": "argument"},
    )

    @property
    def terms(self) -> Terms:
        """The names of the ends."""
        return TERMS[self.find]

    def oldest_first(self, good: str, bad: str) -> tuple[str, str]:
        """Return what belongs to the two ends, that of the older one first."""
        return (good, bad) if self.find == "regression" else (bad, good)

    @property
    def budget(self) -> Budget:
        """The limits in the model's units (seconds)."""
        return Budget(self.max_hours and self.max_hours * 3600.0, self.max_builds, self.max_runs)


def option_name(field: str) -> str:
    """Return the option of the command line that sets a field of a request."""
    extra = Request.model_fields[field].json_schema_extra
    name = extra.get("option") if isinstance(extra, dict) else None
    return str(name or f"--{field.replace('_', '-')}")


def command_line(request: Mapping[str, Any]) -> list[str]:
    """Return the `perfbisect start` that asks for the same bisection. request: a dumped `Request`."""
    command, arguments = ["perfbisect", "start"], list[str]()
    unneeded = ("repo", "recipe") if request.get("kernels") else ()  # a list of kernels excludes them
    for field in Request.model_fields:
        value, option = request.get(field), option_name(field)
        if not value or (field, value) == ("find", "regression") or field in unneeded:  # None, off, none
            continue
        if field == "paths":
            arguments = [str(path) for path in value]
        elif value is True:
            command.append(option)
        elif isinstance(value, Mapping):
            command += [w for name, many in value.items() for one in many for w in (option, f"{name}={one}")]
        elif isinstance(value, list | tuple):
            command += [w for one in value for w in (option, str(one))]
        else:
            command += [option, str(value)]
    return command + (["--", *arguments] if arguments else [])


class KnownFix(Spec):
    """What a known fix became: its full id, and those of the commits that it mends."""

    sha: str
    guilty: tuple[str, ...]


class Attempt(Spec):
    """What `perfbisect try` measures beside the parent of a culprit. Commits are full ids.

    of: the bisection that found the culprit; unpatched: the culprit, or the commit that the patches are put
    on; tried: a commit, or an id made of the unpatched one and the patches. patches: absolute paths; sums:
    their SHA-256.
    """

    of: str
    culprit: str
    unpatched: str
    tried: str
    patches: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()

    def command_line(self) -> list[str]:
        """Return the `perfbisect try` that asks for the same."""
        rev = self.unpatched if self.patches else self.tried
        applied = [word for patch in self.patches for word in ("--apply", patch)]
        return ["perfbisect", "try", self.of, *applied, *(["--rev", rev] if rev != self.culprit else [])]

    def tried_name(self) -> str:
        """Return what people call what is tried, where it is no commit."""
        return f"{', '.join(Path(patch).name for patch in self.patches)} on {self.unpatched[:12]}"


class NightSpec(Spec):
    """What a night of a series measures, or the confirmation of what it made suspect.

    A night boots the tip (bad) `boots` times and the reference (good) once; a confirmation compares the last
    good commit with the tip. begun: when the series was created; alert: that is confirmed, '' for none.
    """

    series: str
    begun: float
    number: int
    kind: Literal["night", "backfill", "confirmation"] = "night"
    boots: int = 0
    alert: str = ""


class Accepted(Spec):
    """A request with everything in it resolved; kept with the bisection and never changed.

    good, bad: full commit ids; goal: as `serialization.goal_to_json` writes it; workload_sum: checksum of
    the payload, sample_keys: of its manifest's keys; kernels, priors: what `--kernels` lists and `--priors`
    says; recipe_sum: of how the ends are configured and compiled; patch_sums: of the patch files; fixes: what
    `--with-fix` names; version: of the perfbisect that accepted it; recipe_chosen, testbeds_chosen: unsaid.
    attempt: of a try (good, bad: parent, unpatched). night: of a series. cpu: whose caches are modelled.
    """

    request: Request
    good: str
    bad: str
    goal: dict[str, Any]
    testbeds: tuple[str, ...]
    clock: str
    workload: str
    workload_sum: str
    sample_keys: dict[str, str] = Field(default_factory=dict)
    recipe_sum: str = ""
    patch_sums: tuple[str, ...] = ()
    fixes: tuple[KnownFix, ...] = ()
    version: str = ""
    recipe_chosen: bool = False
    testbeds_chosen: bool = False
    attempt: Attempt | None = None
    night: NightSpec | None = None
    kernels: tuple[ListedKernel, ...] = ()
    cpu: CpuModel | None = None
    priors: Priors | None = None

    @property
    def searches(self) -> bool:
        """Whether commits are searched between the ends, not only a few kernels compared."""
        return self.attempt is None and self.night is None

    def the_goal(self) -> Goal:
        """Return the goal as the model knows it."""
        return serialization.goal_from(self.goal)

    def identity(self) -> str:
        """Return 8 hex digits that are equal for the same request: same commits, settings and payload."""
        same = self.model_dump(
            exclude={"version", "recipe_chosen", "testbeds_chosen", "sample_keys"}
            | {name for name in ("fixes", "kernels") if not getattr(self, name)}
            | {name for name in ("attempt", "night", "cpu", "priors") if getattr(self, name) is None}
        )
        if self.testbeds_chosen:  # machines that are added to the lab make no other request of it
            same["testbeds"] = same["testbeds"][:1]
        same["goal"] = serialization.identifying(self.goal)
        unsaid = {n: Request.model_fields[n].get_default(call_default_factory=True) for n in _ADDED_LATER}
        same["request"] = {
            name: value
            for name, value in same["request"].items()
            if name not in _NOT_IDENTIFYING and (name not in unsaid or value != unsaid[name])
        }
        text = json.dumps(same, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def read_accepted(text: str) -> Accepted:
    """Return the request of a stored bisection. Raises InfrastructureError for one that is damaged."""
    try:
        return Accepted.model_validate_json(text)
    except ValidationError as error:
        raise InfrastructureError(
            "the request of a stored bisection cannot be read",
            details=describe_problems(error),
            cure="another version of perfbisect wrote it: use that one; or it is damaged: start anew",
        ) from error
