"""Each report that is one HTML file, of made-up measurements: a bisection, a comparison, two profiles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bisector.linux.profile import Profile, Stack, Symbol
from bisector.report.html import bisection_page, comparison_page, profile_section
from bisector.stats import comparison_table
from bisector.stats.samples import SampleSeries, SampleSet
from tests.support.report_material import demo


def reports(folder: Path) -> Iterator[tuple[str, Path]]:
    """Write each kind of report that is one file; yield its name and where it is."""
    old, new = (
        SampleSet(
            name,
            {
                "elapsed": SampleSeries(
                    tuple(tuple(level + 0.01 * ((7 * k + b) % 5) for k in range(8)) for b in range(4)),
                    "s",
                    "lower",
                ),
                "throughput": SampleSeries(
                    tuple(tuple(9e3 / level + 20.0 * ((3 * k + b) % 7) for k in range(8)) for b in range(4)),
                    "ops/s",
                    "higher",
                ),
            },
        )
        for name, level in (("v6.1", 2.0), ("v6.2", 2.11))
    )
    profiles = profile_section.TwoProfiles(_profile("v6.1", 4.0), _profile("v6.2", 13.0))
    for name, text in (
        ("report", bisection_page.render(demo(), profiles)),
        ("comparison", comparison_page.render(comparison_table.build([[old], [new]], threshold=0.02))),
        ("profile", profile_section.render(profiles)),
    ):
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
        yield name, folder / f"{name}.html"


def _profile(name: str, slow: float) -> Profile:
    """Return a profile with call chains, in which taking a lock costs `slow` percent."""
    chains = {
        "perf;do_syscall_64;__x64_sys_write;ksys_write;vfs_write;pipe_write": 24.0,
        "perf;do_syscall_64;__x64_sys_write;ksys_write;vfs_write;pipe_write;rt_mutex_lock": slow,
        "perf;do_syscall_64;__x64_sys_read;ksys_read;vfs_read;pipe_read": 21.0,
        "perf;do_syscall_64;__x64_sys_read;ksys_read;vfs_read;pipe_read;schedule": 12.0,
        "perf;asm_sysvec_apic_timer_interrupt;tick_sched_handle;update_process_times": 3.0,
        "perf;main;run_messages": 30.0 - slow,
    }
    stacks: dict[Stack, float] = {}
    own: dict[Symbol, float] = {}
    for text, weight in chains.items():
        stack = tuple(
            Symbol(one, "task" if one == "perf" else "user" if one in ("main", "run_messages") else "kernel")
            for one in text.split(";")
        )
        stacks[stack] = weight
        own[stack[-1]] = own.get(stack[-1], 0.0) + weight
    return Profile(name, own=own, stacks=stacks, total=sum(own.values()), samples=40_000)
