"""Files of the monitor `counters`: `functions.json`, instructions of each function of a kernel in a run, and
`blocks.json.gz`, how often each block of its code was executed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from bisector.model.facts import USER_CODE
from bisector.schemas.loading import Spec

NAME = "functions.json"

MAX_NAME = 500
"""Characters of a function's name; the kernel has none above KSYM_NAME_LEN, 512 since 6.1 and 128 before."""


MORE_PATHS, DEEPER = "[more call paths]", "[deeper calls]"
"""Names for call paths that the plugin did not separate: there were too many, or they were too deep."""

Amount = Annotated[float, Field(ge=0)]

CallPath = tuple[Annotated[int, Field(ge=0)], str, Amount, Amount]
"""The number of the path it was called from (0: none; the first one is 1), function, instructions, calls."""


class CountedFunction(Spec):
    """Means of the runs. misses: what a model counted, in the order of MISSES; empty without a model. Earlier
    versions had the first three or four alone."""

    name: str = Field(min_length=1, max_length=MAX_NAME, description="as the source has it")
    instructions: float = Field(ge=0, description="a run")
    spread: float = Field(ge=0, description="the most less the least of all runs")
    calls: float = Field(default=0, ge=0, description="a run: executions of its first instructions")
    misses: tuple[float, ...] = Field(default=(), max_length=9, description="a run")


class CountedFunctionsFile(Spec):
    """The file."""

    unit: Literal["instructions"] = "instructions"
    runs: int = Field(ge=1, description="that were counted")
    user: float = Field(ge=0, description="instructions of programs, a run")
    user_spread: float | None = Field(
        default=None,
        ge=0,
        description="the most less the least of all runs; None: an earlier version counted",
    )
    geometry: str = Field(default="", max_length=2000, description="of the processor that is modelled")
    functions: tuple[CountedFunction, ...] = Field(description="of the kernel, the most instructions first")
    programs: tuple[CountedFunction, ...] = Field(
        default=(),
        description="all user code: 'program:function', and what is left of it; an earlier version has none",
    )
    paths: tuple[CallPath, ...] = Field(
        default=(), description="of calls in the kernel, each behind the one that it was called from"
    )
    no_paths: str = Field(default="", max_length=500, description="why there are none")


IN_PROGRAM = ":"
"""Between a program of the workload and its function; no function of a kernel has it in its name."""

USER, OTHER_USER = USER_CODE, "[other user code]"
"""All user code, where nothing of it can be told apart, and else what is left of it: programs and libraries
that are not of the workload, the vdso, and code that several programs have in common."""

ENTRY = "[an entry of the kernel]"
"""Stands for the caller of code that the kernel did not call: system calls, interrupts, new tasks."""

CALLED_FROM = " < "
"""Between a function and its caller, in the name of what it executes for that caller."""


def callers_of(paths: Sequence[CallPath]) -> Mapping[tuple[str, str], float]:
    """Return instructions that each function executes itself for each of its callers: (function, caller)."""
    found: dict[tuple[str, str], float] = {}
    for parent, name, instructions, _ in paths:
        key = name, paths[parent - 1][1] if parent else ENTRY
        found[key] = found.get(key, 0.0) + instructions
    return found


INSTRUCTIONS = "instructions"

MISSES = {
    "L1i-misses": "modelled misses of L1i",
    "L1d-misses": "modelled misses of L1d",
    "LL-misses": "modelled misses to memory",
    "branch-misses": "modelled mispredicted branches",
    "L2-misses": "modelled misses of L2",
    "iTLB-misses": "modelled misses of the iTLB",
    "dTLB-misses": "modelled misses of the dTLB",
    "sTLB-misses": "modelled misses of both TLBs",
    "modelled-cycles": "modelled cycles",
}
"""What `CountedFunction.misses` holds, in this order: by the metric that each is part of, its unit in the
records of a boot."""

OTHERS = "[other functions]"
"""Stands for those functions whose misses are not kept one by one."""

BLOCKS = "blocks.json.gz"

MAX_BLOCKS = 100_000
"""Kept of a boot, those with most instructions: at most 6 MB before they are packed."""

MAX_BYTES = 32 << 20
"""Of that file, unpacked: five times what this version writes, with 60 characters a block."""

Address = Annotated[int, Field(ge=0, lt=1 << 64)]

CountedBlock = tuple[Address, Annotated[int, Field(ge=0, lt=1 << 16)], Amount]
"""Where it begins, bytes of its code, executions in a run (mean). Blocks overlap where one is jumped into."""


class CountedBlocks(Spec):
    """The file of blocks."""

    runs: int = Field(ge=1, description="that were counted")
    arch: str = Field(max_length=20, description="of the kernel")
    sha: str = Field(max_length=200, description="of the commit, or what a package is listed as")
    recipe: str = Field(max_length=200, description="by which it was built")
    image: str = Field(max_length=4096, description="of the kernel, where it was then")
    sha256: str = Field(max_length=64, description="of the image's file")
    left_out: int = Field(default=0, ge=0, description="blocks beyond those that are kept")
    blocks: tuple[CountedBlock, ...] = Field(description="by rising addresses")
