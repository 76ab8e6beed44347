"""What a guest counted, run by run: metrics for each, and the profile of those that may be samples."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bisector.adapters.guest.counting.count_file import CountFile, RunCounts
from bisector.adapters.guest.counting.counting_plugin import counting_plugin, plugin_argument
from bisector.adapters.system.architectures import Machine
from bisector.errors import TestbedLost
from bisector.ports import Counting
from bisector.schemas.kernel.cpu_model import cpu_model

_FILE = "counts.jsonl"


class CountedRuns:
    """The counts of one boot. argument: the value of QEMU's option -plugin."""

    def __init__(self, counting: Counting, cache: Path, machine: Machine, folder: Path) -> None:
        """Make the plugin and its file in the boot's folder. Raises InfrastructureError."""
        self._counting, self._cpu = counting, cpu_model(counting.cpu)
        plugin = counting_plugin(cache, machine).absolute()
        self._file = CountFile(folder / _FILE)
        self.argument = plugin_argument(plugin, counting, self._file.path)

    def skip(self) -> None:
        """Pass over a run that is no sample. One that did not end well may have left nothing."""
        self._file.skip()

    def take(self) -> Mapping[str, float]:
        """Return the metrics of the run that has just ended. Raises TestbedLost."""
        counts: RunCounts = self._file.next_run()
        values = counts.values(self._cpu)
        missing = [name for name in self._counting.metrics if name not in values]
        if missing:
            raise TestbedLost(f"the emulator did not count '{missing[0]}'", details=str(self._file.path))
        return {name: values[name] for name in self._counting.metrics}
