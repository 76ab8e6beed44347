"""The counts of a guest for each run: metrics, and the profile of runs that may be samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from bisector.adapters.guest.counting.block_counts import BlockCounts
from bisector.adapters.guest.counting.call_paths import FunctionNumbers
from bisector.adapters.guest.counting.count_file import CountFile, RunCounts
from bisector.adapters.guest.counting.counting_plugin import (
    Followed,
    counting_plugin,
    counts_caches,
    plugin_argument,
)
from bisector.adapters.guest.counting.function_counts import (
    EventCounts,
    FunctionCounts,
    FunctionMetrics,
    values,
)
from bisector.adapters.guest.counting.module_symbols import ModuleSymbols
from bisector.adapters.guest.counting.programs import programs_in
from bisector.adapters.guest.counting.symbol_table import SymbolTable, symbols_of
from bisector.adapters.system.architectures import Machine
from bisector.adapters.system.files import write_file
from bisector.errors import InfrastructureError, TestbedLost, WorkloadFailed
from bisector.model.facts import MonitorResult, MonitorValue
from bisector.ports import Counting, Kernel
from bisector.schemas.counted_functions import NAME
from bisector.schemas.kernel.cpu_model import cpu_model
from bisector.schemas.workload.counted_metrics import FUNCTIONS, counted_function, needs_of

MONITOR = "counters"
"""The monitor that is answered from the samples themselves."""

_FILE, _FUNCTIONS = "counts.jsonl", "functions.bin"
_FOLLOWED = "x86_64"
"""The architecture whose calls and returns touch the stack, which is how the plugin follows them."""
_NO_BEGINNING = "no function of this kernel is known to begin it"
_OTHER_METRIC = "decide by another metric: compilers inline functions, and commits rename and remove them"
_MAX_VALUES = 10_000
"""Most values on functions that are kept with a boot's records: a run executes some 3,000 of a kernel's."""


class CountedRuns:
    """The counts of one boot. argument: the value of QEMU's option -plugin."""

    def __init__(
        self,
        counting: Counting,
        kernel: Kernel,
        cache: Path,
        machine: Machine,
        folder: Path,
        payload: Path,
        warmup: int = 0,
        cmdline: str = "",
    ) -> None:
        """Make the plugin and its file in the boot's folder. Raises InfrastructureError.

        payload: folder with the programs whose functions are told apart; warmup: first runs, which belong to
        no profile; cmdline: what the kernel is told, which says whether it moves itself.
        """
        self._counting, self._cpu = counting, cpu_model(counting.cpu)
        plugin = counting_plugin(cache, machine).absolute()
        self._file = CountFile(folder / _FILE)
        self._folder, self._kernel, self._warmup = folder / "monitors" / MONITOR, kernel, warmup
        self._functions = FunctionCounts(programs_in(payload) if counting.profile else None)
        self._blocks = BlockCounts()
        self._places: tuple[EventCounts, FunctionMetrics] | None = None
        self._symbols: SymbolTable | str | None = None
        self._numbers, self._no_paths = self._functions_to_follow(machine, folder / _FUNCTIONS, cmdline)
        # The first sample: runs are alike, and following them all would cost a third of their CPU time.
        followed = Followed(folder / _FUNCTIONS, warmup + 1) if self._numbers else None
        self.argument = plugin_argument(plugin, counting, self._file.path, followed)

    def _functions_to_follow(
        self, machine: Machine, file: Path, cmdline: str
    ) -> tuple[FunctionNumbers | None, str]:
        """Write the file for the paths of calls; return the functions' numbers, or why there are none."""
        if not self._counting.profile:
            return None, ""
        if machine.arch != _FOLLOWED:
            return None, f"paths of calls are followed on {_FOLLOWED} alone"
        symbols = symbols_of(self._kernel, cmdline)
        if isinstance(symbols, str):
            return None, symbols
        numbers = FunctionNumbers(symbols)
        write_file(file, numbers.records())
        return numbers, ""

    def take(self, number: int, cmdline: str) -> Mapping[str, float]:
        """Return the metrics of the run that has just ended, by its number.

        cmdline: of the kernel. Raises TestbedLost; WorkloadFailed where the kernel does not have what is
        needed, and InfrastructureError where nobody knows, without its symbols.
        """
        counts = self._file.run(number)
        found = {**counts.values(self._cpu), **self._by_place(counts, cmdline)}
        missing = [name for name in self._counting.metrics if name not in found]
        for name in missing:
            self._excuse(name, cmdline)
        if self._warmup > 0:
            self._warmup -= 1
        elif self._counting.profile and not isinstance(symbols := self._symbol_table(cmdline), str):
            self._functions.add(counts, symbols, self._numbers.names if self._numbers else ())
            self._blocks.add(counts, symbols)
        return {name: found[name] for name in self._counting.metrics if name in found}

    def _by_place(self, counts: RunCounts, cmdline: str) -> Mapping[str, float]:
        """Return the metrics that depend on places in the kernel; none where these are not known."""
        if FUNCTIONS not in needs_of(self._counting.metrics):
            return {}
        symbols = self._symbol_table(cmdline)
        if self._places is None and not isinstance(symbols, str):
            self._places = EventCounts(symbols), FunctionMetrics(symbols, self._counting.metrics)
        return {name: value for one in self._places or () for name, value in one.values(counts).items()}

    def _excuse(self, name: str, cmdline: str) -> None:
        """Raise the error for a metric that was not counted, unless it may be left out."""
        if FUNCTIONS not in needs_of([name]):
            raise TestbedLost(f"the emulator did not count '{name}'", details=str(self._file.path))
        if name in self._counting.needed:
            symbols = self._symbol_table(cmdline)
            if isinstance(symbols, str):
                raise InfrastructureError(f"'{name}' cannot be counted: {symbols}")
            function = counted_function(name)
            none = f"this kernel has no function '{function}'" if function else _NO_BEGINNING
            raise WorkloadFailed(f"'{name}' cannot be counted: {none}", cure=_OTHER_METRIC)

    def profile(self, cmdline: str, module_symbols: Callable[[], str] = str) -> MonitorResult:
        """Return what each function executed in the runs so far.

        cmdline: of the kernel; module_symbols: asks for lines of its /proc/kallsyms, where that is needed.
        """
        symbols = self._symbol_table(cmdline)
        if isinstance(symbols, str):
            return MonitorResult(MONITOR, absent=(symbols,))
        cpu = self._cpu if counts_caches(self._counting) else None
        modules = ModuleSymbols(module_symbols()) if self._functions.elsewhere else None
        found = self._functions.summarise(cpu, self._no_paths, modules)
        if found is None:
            return MonitorResult(MONITOR, absent=("no run was counted",))
        write_file(self._folder / NAME, found.model_dump_json().encode())
        self._blocks.write(self._folder, self._kernel)
        seen = tuple(MonitorValue(*value) for value in values(found, _MAX_VALUES))
        return MonitorResult(MONITOR, str(self._folder), seen)

    def _symbol_table(self, cmdline: str) -> SymbolTable | str:
        """Return the kernel's functions, read once, or why they cannot be read."""
        if self._symbols is None:
            self._symbols = symbols_of(self._kernel, cmdline)
        return self._symbols
