"""The models of `perfbisect report --json`; `docs/reference/report.schema.json` is made of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bisector.model.decisions import Purpose
from bisector.model.facts import KernelFacts, MonitorResult
from bisector.model.goal import Direction, Find, TestbedClock, Threshold, Verdict
from bisector.model.records import SetAside
from bisector.schemas.request import Attempt

DOCUMENT_VERSION = 1
"""Of the document: raised when a key is removed or means something else. Ignore keys that are unknown."""

Sha = Annotated[str, Field(description="a full commit id")]
Seconds = Annotated[float, Field(description="seconds")]
Time = Annotated[float, Field(description="seconds since 1970")]
Number = Annotated[float | None, Field(description="null where it is infinite or not known")]


class _Part(BaseModel):
    model_config = ConfigDict(populate_by_name=True)


class Effect(_Part):
    """A relative change of the metric (0.35: the number rises by 35%) with its limits."""

    low: Number
    estimate: Number
    high: Number


class Level(Effect):
    """The level of a commit relative to the older end."""

    commit: Sha


class DecidingMetric(_Part):
    """The measured quantity."""

    name: str
    unit: str
    better: Direction


class NamedCommit(_Part):
    """A commit; what was not looked up is empty. when: author date."""

    sha: Sha
    subject: str
    author: str
    when: Time
    describe: str


Change = tuple[str, str, str]


class KernelDifference(_Part):
    """What differs besides code: lists of [name, before, after]. known: whether both kernels are known."""

    options: list[Change]
    granted: list[str]
    withdrawn: list[str]
    preemption: tuple[str, str] | None
    settings: list[Change]
    mitigations: list[Change]
    sysctls: list[Change]
    sizes: list[Change]
    known: bool


class CallerChange(_Part):
    """The cost of a function for one of its callers. counts: instructions of a run."""

    name: str
    counts: tuple[float, float]
    change: float


class CountedFunctionChange(_Part):
    """One function. counts: instructions of a run; calls: of it, 0 where not counted; callers: for whom.

    spread: by how much the runs of one boot differ, null where not known. misses: modelled, of L1i, of L1d,
    to memory, of the branch predictor, of L2, of the TLBs of instructions and data, of both, and cycles.
    """

    name: str
    origin: str
    counts: tuple[float, float]
    change: float
    touched: bool
    calls: tuple[float, float]
    callers: list[CallerChange]
    spread: tuple[float | None, float | None]
    misses: tuple[list[float], list[float]]


class CountedFunctions(_Part):
    """What accounts for an effect. of_the_metric: instructions decide; rest: of others; commands: of ends."""

    of_the_metric: bool
    unit: str
    totals: tuple[float, float]
    functions: list[CountedFunctionChange]
    rest: float
    modelled: str
    commands: dict[str, str] = {}


class OtherMetric(_Part):
    """Another metric of the same runs that differs by its own threshold. values: means of good and bad."""

    metric: DecidingMetric
    testbed: str
    values: tuple[float, float]
    effect: Effect
    worse: bool
    command: str


class ReportedFinding(_Part):
    """A culprit or the smallest set it is in; none if small (below the threshold), or opposite (a gain)."""

    commits: list[NamedCommit]
    parents: list[NamedCommit]
    effect: Effect
    confidence: float
    probability: float | None
    certified: bool
    small: bool
    opposite: bool
    note: str
    differences: KernelDifference | None
    functions: CountedFunctions | None


class OneTestbed(_Part):
    """What one testbed shows. boots: of both sides."""

    testbed: str
    effect: Effect
    shows: Literal["reproduced", "opposite", "small", "none", "open"]
    boots: tuple[int, int]


class ByTestbed(_Part):
    """What each testbed shows between two commits. p: that they differ so much by chance."""

    before: Sha = Field(alias="from")
    to: Sha
    disagree: bool
    p: float
    testbeds: list[OneTestbed]


class ReportedMending(_Part):
    """The effect of a tried change on a loss. share: of the loss that is gone."""

    loss: Effect
    gain: Effect
    rest: Effect
    share: Effect | None


class ReportedRun(_Part):
    """One run of a boot; with flags or as a warm-up it is no sample."""

    index: int
    value: Number
    flags: list[str]
    warmup: bool


class ReportedTrial(_Part):
    """One boot with its runs. note: what it ran, and where its console is."""

    boot: str
    commit: Sha
    testbed: str
    ok: bool
    seconds: Seconds
    at: Time
    layout: int
    purpose: Purpose
    failure: str
    reason: str
    verdict: str
    discarded: bool
    console_cut: bool
    overhead: float | None
    runs: list[ReportedRun]
    note: dict[str, str]


class MonitoredBoot(_Part):
    """What monitors saw in a boot, in runs of their own."""

    boot: str
    commit: Sha
    testbed: str
    seen: list[MonitorResult]


class ReportedBuild(_Part):
    """One build. binary: equal for identical kernels; kernel: empty where the build failed."""

    commit: Sha
    ok: bool
    seconds: Seconds
    binary: str
    layout: int
    cached: bool
    failure: str
    fetched: bool
    kernel: KernelFacts | dict[str, Any]


class ConfigurationChange(_Part):
    """An option that changed within the commits of `last`..`first`."""

    name: str
    before: str
    after: str
    last: Sha
    first: Sha
    commits: int


class Mark(_Part):
    """The user said what a commit is."""

    commit: Sha
    verdict: Verdict
    note: str


class Discard(_Part):
    """The user threw away the data of a boot or of a testbed."""

    kind: Literal["testbed", "boot"]
    name: str
    note: str


class ReportDocument(_Part):
    """The report of one bisection."""

    version: Literal[1] = Field(alias="schema")
    id: str
    created: Time
    status: str
    exit_code: int | None
    request: dict[str, Any]
    recipe_chosen: bool
    good: Sha
    bad: Sha
    find: Find
    candidates: int
    metric: DecidingMetric
    threshold: Threshold
    alpha: float
    clock: TestbedClock
    ending: str | None
    summary: str
    confidence: float | None
    total: Effect | None
    rest: Effect | None
    findings: list[ReportedFinding]
    so_far: list[ReportedFinding]
    levels: list[Level]
    warnings: list[str]
    by_testbed: list[ByTestbed]
    set_aside: list[SetAside]
    other_direction: str
    other_metrics: list[OtherMetric]
    end_functions: CountedFunctions | None
    modelled: str
    attempt: Attempt | None
    mending: ReportedMending | None
    trials: list[ReportedTrial]
    monitors: list[MonitoredBoot]
    builds: list[ReportedBuild]
    drift: list[ConfigurationChange]
    untestable: dict[str, str]
    user: list[Mark | Discard]
    costs: dict[str, str]
    host: dict[str, str]
    files: dict[str, str]


def json_schema() -> dict[str, Any]:
    """Return the schema (JSON Schema, draft 2020-12)."""
    found = ReportDocument.model_json_schema(by_alias=True, mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found, "title": "perfbisect report"}
