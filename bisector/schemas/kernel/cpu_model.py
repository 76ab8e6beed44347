"""Processors whose caches can be modelled (`kernels/cpus.toml`): geometry, predictor, and stated penalties.

The counters of emulated guests are given these as arguments. What comes of it is a model's, never measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from bisector.errors import RequestError, nearest
from bisector.resources import resource
from bisector.schemas.loading import Distinct, Spec, load_toml, matching
from bisector.schemas.refusal import WrongKeyError

PAGE_BYTES = 4096
"""Every page is taken as one of 4 KiB: a plugin of QEMU does not see larger ones."""

_LARGEST_CACHE = 1 << 30
_MOST_WAYS = 4096
"""The largest cache and the most ways that the plugin models: LEVEL_BYTES_MAX and WAYS_MAX of
memory_model.c."""


def _power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


class CacheGeometry(Spec):
    """One cache. The number of its sets is a power of two."""

    size: int = Field(ge=64, le=_LARGEST_CACHE, description="bytes")
    ways: int = Field(ge=1, le=_MOST_WAYS, description="lines of a set")
    line: int = Field(ge=4, le=PAGE_BYTES, description="bytes of a line, a power of two")

    @model_validator(mode="after")
    def _whole_sets(self) -> Self:
        sets, rest = divmod(self.size, self.ways * self.line)
        if rest or not _power_of_two(sets) or not _power_of_two(self.line):
            raise WrongKeyError("size / (ways * line) must be a power of two, and so must 'line'", "size")
        return self

    def argument(self) -> str:
        """Return it as the plugin reads it."""
        return f"{self.size}:{self.ways}:{self.line}"


class TlbGeometry(Spec):
    """One TLB. The number of its sets is a power of two."""

    entries: int = Field(ge=1, le=_LARGEST_CACHE // PAGE_BYTES, description="pages")
    ways: int = Field(ge=1, le=_MOST_WAYS, description="pages of a set")

    @model_validator(mode="after")
    def _whole_sets(self) -> Self:
        sets, rest = divmod(self.entries, self.ways)
        if rest or not _power_of_two(sets):
            raise WrongKeyError("entries / ways must be a power of two", "entries")
        return self

    def argument(self) -> str:
        """Return it as the plugin reads it."""
        return f"{self.entries * PAGE_BYTES}:{self.ways}:{PAGE_BYTES}"


class PredictorGeometry(Spec):
    """A gshare predictor of conditional branches: two-bit counters, and outcomes that choose among them."""

    table_bits: int = Field(ge=1, le=24, description="2^N counters")
    history_bits: int = Field(ge=0, le=24, description="outcomes; at most table_bits")

    @model_validator(mode="after")
    def _history_fits(self) -> Self:
        if self.history_bits > self.table_bits:
            raise WrongKeyError("must not be above 'table_bits'", "history_bits")
        return self

    def argument(self) -> str:
        """Return it as the plugin reads it."""
        return f"{self.table_bits}:{self.history_bits}"


_Cycles = Annotated[int, Field(ge=0, le=100_000)]


class Penalties(Spec):
    """Cycles on top of one an instruction. L2, LL, memory: where an access is answered that L1 missed."""

    L2: _Cycles
    LL: _Cycles
    memory: _Cycles
    branch: _Cycles = Field(description="of a branch that was not predicted")
    sTLB: _Cycles = Field(description="of a page that the first TLB did not have")
    walk: _Cycles = Field(description="of a page that no TLB had")

    def of(self, instructions: float, missed: Sequence[float]) -> float:
        """Return one cycle an instruction, and the penalties of what missed, each where it was answered.

        missed: of L1i, L1d, L2, the last level, the TLB of instructions, of data, the second one, the
        predictor.
        """
        code, data, second, last, code_pages, data_pages, walks, branches = missed
        return float(
            instructions
            + (code + data - second) * self.L2
            + (second - last) * self.LL
            + last * self.memory
            + (code_pages + data_pages - walks) * self.sTLB
            + walks * self.walk
            + branches * self.branch
        )


class CpuModel(Spec):
    """One processor."""

    name: Annotated[str, matching(r"[a-z0-9][a-z0-9-]{0,39}", "small letters, digits and '-'")]
    model: str = Field(min_length=1, max_length=200, description="its name and year")
    source: str = Field(min_length=1, max_length=1000, description="where these numbers stand")
    L1i: CacheGeometry
    L1d: CacheGeometry
    L2: CacheGeometry
    LL: CacheGeometry
    iTLB: TlbGeometry
    dTLB: TlbGeometry
    sTLB: TlbGeometry
    predictor: PredictorGeometry
    cycles: Penalties
    estimates: Distinct[str] = Field(default=(), description="numbers that no source states: 'walk'")

    def arguments(self) -> dict[str, str]:
        """Return the caches and TLBs as arguments of the plugin."""
        levels = ("L1i", "L1d", "L2", "LL", "iTLB", "dTLB", "sTLB")
        return {level: getattr(self, level).argument() for level in levels}

    def summary(self) -> str:
        """Return the geometry in one line, for reports."""
        caches = ", ".join(
            f"{name} {cache.size >> 10} KiB {cache.ways}-way"
            for name, cache in (("L1i", self.L1i), ("L1d", self.L1d), ("L2", self.L2), ("LL", self.LL))
        )
        tlbs = ", ".join(
            f"{name} {tlb.entries}"
            for name, tlb in (("iTLB", self.iTLB), ("dTLB", self.dTLB), ("second TLB", self.sTLB))
        )
        lines = f"lines of {self.L1d.line} bytes"
        cycles, gshare = self.cycles, self.predictor
        penalties = (
            f"one cycle an instruction and {cycles.L2} where L2 answers, {cycles.LL} the last level, "
            f"{cycles.memory} memory, {cycles.branch} a wrong branch, {cycles.sTLB} the second TLB, "
            f"{cycles.walk} a page walk"
        )
        estimates = f" (estimates: {', '.join(self.estimates)})" if self.estimates else ""
        return (
            f"{self.model}: {caches}, {lines}; {tlbs} pages of 4 KiB; LRU, no prefetcher; gshare of "
            f"2^{gshare.table_bits} counters; {penalties}{estimates}"
        )


class CpuModels(Spec):
    """The TOML file."""

    described_in = "kernels/README.md"

    cpu: tuple[CpuModel, ...] = Field(min_length=1, description="processors, a row each")

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        names = [row.name for row in self.cpu]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise WrongKeyError(f"'{name}' has a row already", "cpu", str(number), "name")
        return self


def load_cpu_models(kernels: Path | None = None) -> tuple[CpuModel, ...]:
    """Read `cpus.toml` of a `kernels` folder (default: the shipped one)."""
    return load_toml((kernels or resource("kernels")) / "cpus.toml", CpuModels).cpu


def cpu_model(name: str) -> CpuModel:
    """Return a processor by its name, '' for the first one. Raises RequestError naming the known ones."""
    rows = load_cpu_models()
    for row in rows:
        if name in ("", row.name):
            return row
    known = [row.name for row in rows]
    raise RequestError(
        f"there is no processor '{name}'{nearest(name, known)}",
        details="\n".join(f"{row.name}: {row.model}" for row in rows),
        cure="name one that kernels/cpus.toml has: --monitor counters=NAME",
    )


def require_unchanged(begun: CpuModel, name: str) -> None:
    """Raise RequestError when a name (see `cpu_model`) stands for another row than when a bisection began.

    Misses of before and after would not compare.
    """
    try:
        row = cpu_model(name)
    except RequestError as error:
        now = error.message
    else:
        now = row.summary()
        cited = {"source": begun.source, "estimates": begun.estimates}
        if row.model_copy(update=cited) == begun:  # where numbers were read changes no count
            return
    raise RequestError(
        f"the processor '{begun.name}' of kernels/cpus.toml has changed since the bisection began",
        details=f"begun with {begun.summary()}\nnow {now}",
        cure="start a new one, or put the row back as it was: the first one where none is named",
    )
