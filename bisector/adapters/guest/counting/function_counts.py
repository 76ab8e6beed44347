"""From executed blocks to functions: sums over the blocks of each run.

A block belongs to the function in which it begins. Functions of programs and what is left of user code add up
to all of it, as those of the kernel do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bisector.adapters.guest.counting.call_paths import CallPaths
from bisector.adapters.guest.counting.count_file import RunCounts
from bisector.adapters.guest.counting.module_symbols import ModuleSymbols
from bisector.adapters.guest.counting.programs import Programs
from bisector.adapters.guest.counting.symbol_table import ELSEWHERE, SymbolTable
from bisector.linux.kernel_entries import counted_by
from bisector.schemas.counted_functions import (
    CALLED_FROM,
    INSTRUCTIONS,
    MISSES,
    OTHER_USER,
    OTHERS,
    USER,
    CountedFunction,
    CountedFunctionsFile,
    callers_of,
)
from bisector.schemas.kernel.cpu_model import CpuModel
from bisector.schemas.workload.counted_metrics import counted_function

_SMALLEST = (1e-5, 1e-4, 1e-3)
"""Least shares for a value to be kept with the boot's records: of a run's instructions, for what a function
executes for one caller, and of a run's misses of one kind. The next share holds where not all of that fits.

A function that is below it in only one of two kernels seems to begin or to end at 0. With the first share
that is an error of at most a thousandth of a threshold of 1%. Of pipe-test on 6.1.176 with a model it keeps
5,500 of 7,600 values.
"""

_CALLS = 1
_MISSED = 8
"""Numbers of what missed, as a block has them (count_file.py)."""
_COLUMNS = 2 + _MISSED
"""Instructions; calls, which are executions of a function's first block, or of a block that is of no function
yet; what missed."""
_KEPT = (0, 1, 3, 7, 2, 4, 5, 6)
"""Of what missed, which number stands where in `CountedFunction.misses`; cycles are the last one."""


@dataclass(slots=True)
class _Sums:
    """One function. sums: of its columns over all runs; runs: those that executed it."""

    sums: list[int] = field(default_factory=lambda: [0] * _COLUMNS)
    least: int | None = None
    most: int = 0
    runs: int = 0

    def add(self, columns: Sequence[int]) -> None:
        """Take one more run."""
        self.sums = [a + b for a, b in zip(self.sums, columns, strict=True)]
        self.least = columns[0] if self.least is None else min(self.least, columns[0])
        self.most = max(self.most, columns[0])
        self.runs += 1


class FunctionCounts:
    """Sums of the runs of one boot. A run's blocks are summed up at once: they take megabytes."""

    def __init__(self, programs: Programs | None = None) -> None:
        """Begin without a run. programs: those whose functions are told apart."""
        self._runs = 0
        self._user = _Sums()
        self._known = programs or Programs()
        self._programs: defaultdict[str, _Sums] = defaultdict(_Sums)
        self._paths = CallPaths()
        self._functions: defaultdict[str, _Sums] = defaultdict(_Sums)
        self._elsewhere: list[Mapping[int, list[int]]] = []

    @property
    def elsewhere(self) -> bool:
        """Whether code outside of the kernel's own text was executed."""
        return any(self._elsewhere)

    def add(self, counts: RunCounts, symbols: SymbolTable, names: Sequence[str] = ()) -> None:
        """Take one more run. names: of functions, by the plugin's numbers. Raises TestbedLost."""
        self._runs += 1
        self._user.add([counts.user, *[0] * (_COLUMNS - 1)])
        for name, columns in _by_program(counts, self._known).items():
            self._programs[name].add(columns)
        functions, elsewhere = _by_function(counts.blocks, symbols)
        for name, columns in functions.items():
            self._functions[name].add(columns)
        self._elsewhere.append(elsewhere)
        self._paths.add(counts.paths, names)

    def summarise(
        self, cpu: CpuModel | None, no_paths: str = "", modules: ModuleSymbols | None = None
    ) -> CountedFunctionsFile | None:
        """Return what each function executed, the most first; None without a run.

        cpu: whose caches were modelled; None: nobody's. no_paths: why no paths of calls were counted.
        modules: of this boot.
        """
        if not self._runs:
            return None
        everything = {**self._functions, **self._of_modules(modules or ModuleSymbols())}
        functions = [self._mean(name, one, cpu) for name, one in everything.items()]
        rest = OTHER_USER if len(self._programs) > 1 else USER
        programs = [self._mean(name or rest, one, cpu) for name, one in self._programs.items()]
        return CountedFunctionsFile(
            runs=self._runs,
            user=self._user.sums[0] / self._runs,
            user_spread=self._spread(self._user),
            geometry=cpu.summary() if cpu is not None else "",
            functions=tuple(sorted(functions, key=_most_first)),
            programs=tuple(sorted(programs, key=_most_first)),
            paths=tuple(self._paths.summarise()),
            no_paths=no_paths,
        )

    def _of_modules(self, modules: ModuleSymbols) -> Mapping[str, _Sums]:
        """Return the functions of modules, by a name that none of the kernel's own has, and what is left."""
        found: defaultdict[str, _Sums] = defaultdict(_Sums)
        for blocks in self._elsewhere:
            run: defaultdict[str, list[int]] = defaultdict(lambda: [0] * _COLUMNS)
            for address, columns in blocks.items():
                name, module = modules.function(address) or (ELSEWHERE, "")
                line = run[f"{name} [{module}]" if name in self._functions else name]
                for at, value in enumerate(columns):
                    line[at] += value if at != _CALLS or modules.is_entry(address) else 0
            for name, line in run.items():
                found[name].add(line)
        return found

    def _mean(self, name: str, found: _Sums, cpu: CpuModel | None) -> CountedFunction:
        means = [total / self._runs for total in found.sums]
        missed = means[2:]
        misses = () if cpu is None else (*(missed[at] for at in _KEPT), cpu.cycles.of(means[0], missed))
        return CountedFunction(
            name=name,
            instructions=means[0],
            spread=self._spread(found),
            calls=means[1],
            misses=misses,
        )

    def _spread(self, found: _Sums) -> float:
        least = found.least if found.runs == self._runs and found.least is not None else 0
        return float(found.most - least)


class EventCounts:
    """How often a kernel is entered, or another task switched to: executions of where that begins."""

    def __init__(self, symbols: SymbolTable) -> None:
        """Look up where that is in a kernel."""
        events = counted_by({name for _, name in symbols})
        self._metrics = tuple(events)
        self._begins = {place: event for event, names in events.items() for place in symbols.entries(names)}

    def values(self, counts: RunCounts) -> Mapping[str, float]:
        """Return metrics of one run; those of which this kernel shows nothing are left out."""
        found = dict.fromkeys(self._metrics, 0.0)
        for address, _, _, executions, *_ in counts.blocks:
            if address in self._begins:
                found[self._begins[address]] += executions
        return found


class FunctionMetrics:
    """What single functions of a kernel execute in a run: one that was inlined or renamed is not there."""

    def __init__(self, symbols: SymbolTable, metrics: Iterable[str]) -> None:
        """Look up the functions of metrics, by the names that they have in the source."""
        self._symbols = symbols
        there = {name for _, name in symbols}
        wanted = {counted_function(metric): metric for metric in metrics}
        self._metrics = {name: metric for name, metric in wanted.items() if name in there}

    def values(self, counts: RunCounts) -> Mapping[str, float]:
        """Return the instructions of each function in one run; without those that are not in this kernel."""
        found = dict.fromkeys(self._metrics.values(), 0.0)
        for address, _, instructions, executions, *_ in counts.blocks if found else ():
            metric = self._metrics.get(self._symbols.function(address))
            if metric is not None:
                found[metric] += instructions * executions
        return found


def _most_first(one: CountedFunction) -> tuple[float, str]:
    return -one.instructions, one.name


def _by_program(counts: RunCounts, programs: Programs) -> Mapping[str, Sequence[int]]:
    """Return the columns of each 'program:function', and by '' those of all user code that is left."""
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0] * _COLUMNS)
    rest = sums[""]
    rest[0] = counts.user
    placed = programs.in_run((block[0], block[1], block[4]) for block in counts.programs)
    for address, size, instructions, executions, checksum, *misses in counts.programs:
        name, begins = placed.place(address, size, checksum)
        rest[0] -= instructions * executions
        _take(sums[name], instructions, executions, misses, begins=begins)
    return sums


def _by_function(
    blocks: Sequence[Sequence[int]], symbols: SymbolTable
) -> tuple[Mapping[str, list[int]], Mapping[int, list[int]]]:
    """Return the columns of each function of the kernel's own text, and of each block elsewhere."""
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0] * _COLUMNS)
    elsewhere: defaultdict[int, list[int]] = defaultdict(lambda: [0] * _COLUMNS)
    for address, _, instructions, executions, *misses in blocks:
        name = symbols.function(address)
        line = elsewhere[address] if name == ELSEWHERE else sums[name]
        _take(line, instructions, executions, misses, begins=name == ELSEWHERE or symbols.is_entry(address))
    return sums, elsewhere


def _take(
    line: list[int], instructions: int, executions: int, misses: Sequence[int], *, begins: bool
) -> None:
    """Add a block to the columns of what it is of. begins: whether a function begins with it."""
    line[0] += instructions * executions
    line[_CALLS] += executions if begins else 0
    for column, missed in enumerate(misses, start=2):
        line[column] += missed


def values(found: CountedFunctionsFile, most: int) -> list[tuple[str, float, str]]:
    """Return what a report lists, with units: programs, each function, functions by their callers, misses.

    most: as many of them.
    """
    listed = list[tuple[str, float, str]]()
    for smallest in _SMALLEST:
        listed = list(_values(found, smallest))
        if len(listed) <= most:
            break
    return listed[:most]


def _values(found: CountedFunctionsFile, smallest: float) -> Iterator[tuple[str, float, str]]:
    """Yield them. smallest: share of a sum, see _SMALLEST."""
    for one in (*found.programs, *found.functions):
        yield one.name, one.instructions, INSTRUCTIONS
    callers = callers_of(found.paths)
    least = smallest * sum(callers.values())
    for (callee, caller), instructions in sorted(callers.items(), key=lambda one: (-one[1], one[0])):
        if instructions >= least:
            yield f"{callee}{CALLED_FROM}{caller}", instructions, INSTRUCTIONS
    for column, unit in enumerate(MISSES.values()):
        yield from _misses((*found.programs, *found.functions), column, unit, smallest)


def _misses(
    functions: Sequence[CountedFunction], column: int, unit: str, smallest: float
) -> Iterator[tuple[str, float, str]]:
    """Yield the functions with most of one kind of misses, and the sum of all others."""
    missed = [(one.name, one.misses[column]) for one in functions if len(one.misses) > column]
    least = smallest * sum(value for _, value in missed)
    few = sum(value for _, value in missed if value < least)
    for name, value in sorted(missed, key=lambda one: (-one[1], one[0])):
        if value and value >= least:
            yield name, value, unit
    if few:
        yield OTHERS, few, unit
