"""Records: what a bisection's state grows by. All are frozen and turn into JSON and back without loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bisector.model.decisions import Purpose
from bisector.model.facts import KernelFacts, MonitorResult
from bisector.model.goal import Verdict


@dataclass(frozen=True, slots=True)
class Built:
    """A finished build, good or failed. `binary` is equal for two commits whose kernels are identical.

    kernel: None where the build failed; details: the end of a failed build's log. fetched: another host had
    built it, and it came from the artefact store.
    """

    commit: int
    ok: bool
    seconds: float
    binary: str = ""
    layout: int = 0
    cached: bool = False
    failure: str = ""
    kernel: KernelFacts | None = None
    details: str = ""
    fetched: bool = False


@dataclass(frozen=True, slots=True)
class Booted:
    """One boot. `boot` is its id; ok False means that the kernel failed (never infrastructure).

    facts: what the running kernel says of itself; workload, image: checksums of the payload and of the root
    file system; console: path of the log; overhead: seconds that perfbisect added to build, boot and runs.
    details: what a failed boot printed last; fresh_seed: as in `Measure`.
    """

    boot: str
    commit: int
    testbed: str
    ok: bool
    seconds: float
    at: float
    layout: int = 0
    purpose: Purpose = "search"
    failure: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    workload: str = ""
    image: str = ""
    console: str = ""
    overhead: float | None = None
    details: str = ""
    fresh_seed: bool = False


@dataclass(frozen=True, slots=True)
class Ran:
    """One run in a boot. `index` counts from 0 within the boot; values are in the metrics' own units.

    at: seconds since the epoch when it ended; seconds: host time it took, guest_seconds: the guest's; flags:
    why it is suspicious ('warn', 'stall', 'oom', 'taint', 'clock'); raw: path of the kept output; warmup runs
    are kept and never samples.
    """

    boot: str
    index: int
    values: Mapping[str, float]
    seconds: float
    at: float
    flags: tuple[str, ...] = ()
    warmup: bool = False
    raw: str = ""
    guest_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The workload failed in this boot because of the kernel (crash, error, no metric)."""

    boot: str
    failure: str
    details: str = ""


@dataclass(frozen=True, slots=True)
class Left:
    """The boot has ended; it can take no more runs. lost: it ended by itself (infrastructure); failure: how
    the kernel or its workload failed in it, where that was tried once more and counts against no commit."""

    boot: str
    lost: bool = False
    monitors: tuple[MonitorResult, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Marked:
    """The user said what a commit is (`perfbisect mark`), in the search's terms (`goal.Terms`)."""

    commit: int
    verdict: Verdict
    note: str = ""


@dataclass(frozen=True, slots=True)
class Discarded:
    """The user threw away the data of a testbed or of one boot."""

    kind: Literal["testbed", "boot"]
    name: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Irrelevant:
    """Commits that cannot change the kernel, by the files that the builds so far have read; the latest holds.

    kept: why the others may change it -> how many of them; builds: how many told what they read.
    """

    commits: tuple[int, ...]
    kept: Mapping[str, int]
    builds: int


@dataclass(frozen=True, slots=True)
class FunctionEvidence:
    """Commits by what they change of the functions that the two ends execute differently.

    differ: such a function itself; call: one that calls such a function; elsewhere: neither. Those in none of
    them may have changed any function, or nobody has read what they change.
    """

    differ: tuple[int, ...]
    call: tuple[int, ...]
    elsewhere: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Weighed:
    """Prior weights of commits, by what is known of them, with a mean of 1; the latest holds.

    weights: parallel to commits; named: at how many of these messages point, as named by a later fix or
    revert, or as being one. functions: what the counted functions of the ends tell, which the weights hold;
    None as long as nobody has looked.
    """

    commits: tuple[int, ...]
    weights: tuple[float, ...]
    named: int
    functions: FunctionEvidence | None = None


@dataclass(frozen=True, slots=True)
class SetAside:
    """The search goes on without a testbed, until the bisection is resumed. failure: why."""

    testbed: str
    failure: str
    at: float


Record = Built | Booted | Ran | RunFailed | Left | Marked | Discarded | Irrelevant | Weighed | SetAside
