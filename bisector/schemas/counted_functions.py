"""The file `functions.json` of the monitor `counters`: what each function of a kernel executed in a run."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bisector.schemas.loading import Spec

NAME = "functions.json"

MAX_NAME = 500
"""Characters of a function's name; the kernel has none above KSYM_NAME_LEN, 512 since 6.1 and 128 before."""


MORE_PATHS, DEEPER = "[more call paths]", "[deeper calls]"
"""What stands for paths of calls that the plugin did not tell apart: too many, and too deep."""

CallPath = tuple[int, str, float, float]
"""The number of the path it was called from (0: none; the first one is 1), function, instructions, calls."""


class CountedFunction(Spec):
    """Means of the runs. misses: modelled ones, of L1i, of L1d and to memory; empty without a model."""

    name: str = Field(min_length=1, max_length=MAX_NAME, description="as the source has it")
    instructions: float = Field(ge=0, description="a run")
    spread: float = Field(ge=0, description="the most less the least of all runs")
    misses: tuple[float, ...] = Field(default=(), max_length=3, description="a run")


class CountedFunctions(Spec):
    """The file."""

    unit: Literal["instructions"] = "instructions"
    runs: int = Field(ge=1, description="that were counted")
    user: float = Field(ge=0, description="instructions of programs, a run")
    geometry: str = Field(default="", max_length=2000, description="of the processor that is modelled")
    functions: tuple[CountedFunction, ...] = Field(description="the most instructions first")
    paths: tuple[CallPath, ...] = Field(
        default=(), description="of calls in the kernel, each behind the one that it was called from"
    )
    no_paths: str = Field(default="", max_length=500, description="why there are none")
