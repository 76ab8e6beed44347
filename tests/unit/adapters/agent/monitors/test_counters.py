"""How far the counters in files of /proc and cgroups moved."""

from __future__ import annotations

import pytest

from bisector.adapters.agent.monitors.counters import changes


@pytest.mark.parametrize(
    ("path", "before", "after", "moved"),
    [
        ("/proc/vmstat", "pgfault 10\nnr_free 5\n", "pgfault 25\nnr_free 5\n", {"vmstat pgfault": 15}),
        ("/proc/meminfo", "MemFree:  900 kB\n", "MemFree:  850 kB\n", {"meminfo MemFree": -50}),
        (
            "/proc/stat",
            "cpu  1 0 2 10\nintr 100 7 0\nctxt 5\n",
            "cpu  4 0 2 12\nintr 130 8 29\nctxt 9\n",
            {"stat cpu user": 3, "stat cpu idle": 2, "stat intr": 30, "stat ctxt": 4},
        ),
        (
            "/proc/interrupts",
            "  CPU0 CPU1\n 24: 1 2 IO-APIC 24-edge virtio0\nLOC: 5 5 Local timer interrupts\n",
            "  CPU0 CPU1\n 24: 1 4 IO-APIC 24-edge virtio0\nLOC: 9 6 Local timer interrupts\n",
            {"interrupts 24 (IO-APIC 24-edge virtio0)": 2, "interrupts LOC (Local timer interrupts)": 5},
        ),
        (
            "/proc/diskstats",
            " 254 0 vda 1 0 8 1 0 0 0 0 0 1 1\n",
            " 254 0 vda 3 0 24 1 0 0 0 0 0 1 1\n",
            {"diskstats vda reads": 2, "diskstats vda sectors read": 16},
        ),
        (
            "/sys/fs/cgroup/cpu.stat",
            "usage_usec 5\n",
            "usage_usec 9\nnr_throttled 2\n",
            {
                "cpu.stat usage_usec": 4,
                "cpu.stat nr_throttled": 2,
            },
        ),
    ],
)
def test_counters_of_files(path: str, before: str, after: str, moved: dict[str, int]) -> None:
    assert {seen.name: seen.value for seen in changes(path, before, after)} == moved
