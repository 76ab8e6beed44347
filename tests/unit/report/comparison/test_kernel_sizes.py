"""Sizes of kernels: the base, the change of each section, the sum."""

from __future__ import annotations

from bisector.report.comparison import kernel_sizes
from bisector.stats.comparison_table import TestbedTable
from bisector.stats.samples import SampleSet
from tests.support.samples import two_kernels


def sized(*sizes: dict[str, int]) -> list[list[str]]:
    sets = tuple(SampleSet(f"k{i}", {}, sizes=s) for i, s in enumerate(sizes))
    return [line.split("  ") for line in kernel_sizes.lines(TestbedTable("", sets, ()))]


def test_sections_of_size_come_first_and_the_sum_needs_all_three() -> None:
    lines = kernel_sizes.lines(two_kernels().testbeds[0])
    assert lines[1].split() == ["KERNEL", "text", "data", "bss", "rodata", "dec"]
    assert lines[2].split() == ["6.1", "100", "20", "5", "7", "125"]
    assert lines[3].split() == ["6.2-rt", "110", "(+10)", "20", "(same)", "-", "7", "(same)", "-"]


def test_one_kernel_with_sizes_is_no_comparison() -> None:
    assert sized({"text": 1}, {}) == []


def test_the_first_kernel_with_sizes_is_the_base() -> None:
    whole = {"text": 10, "data": 2, "bss": 1}
    lines = sized({}, whole, {**whole, "text": 7})
    assert [cell.strip() for cell in lines[3] if cell.strip()] == [
        "k2",
        "7 (-3)",
        "2 (same)",
        "1 (same)",
        "10 (-3)",
    ]
