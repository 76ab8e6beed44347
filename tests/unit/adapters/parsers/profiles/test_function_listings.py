"""Lists of functions with their shares: which column is which, what is added up, and where a list ends."""

from __future__ import annotations

import pytest

from bisector.adapters.parsers.profiles.function_listings import (
    looks_oprofiled,
    looks_reported,
    oprofiled,
    reported,
    traced,
)
from bisector.errors import RequestError
from bisector.linux.profile import Symbol

GROUP = """\
# Samples: 392  of events '{}'
# Event count (approx.): 1960000000
#
#         Overhead  Command  Shared Object      Symbol
# ................  .......  .................  ..................
#
    38.78%  {}a        a                  [.] main
"""


@pytest.mark.parametrize("group", ["anon group { cpu-clock, faults }", "{cpu-clock}", "cpu-clock, faults"])
def test_shares_of_two_events_are_not_taken_for_those_of_callers(group: str) -> None:
    with pytest.raises(RequestError, match="x:1: the shares of several events") as refused:
        reported(GROUP.format(group, "39.29%  "), "x")
    assert refused.value.cure == "perf report --stdio --no-group"


def test_the_first_event_of_a_group_that_was_taken_apart_is_shown() -> None:
    other = GROUP.format("faults", "").replace("38.78%", "61.22%").replace("events", "event")
    found = reported(GROUP.format("cpu/event=1,umask=2/u", "") + "\n" + other, "x")
    assert (found.event, found.samples) == ("cpu/event=1,umask=2/u", 392)
    assert found.own == {Symbol("main", "user"): 38.78}


@pytest.mark.parametrize(
    ("said", "samples"), [("12", 12), ("1K", 1_000), ("1.5M", 1_500_000), ("2G", 2 * 10**9)]
)
def test_perf_shortens_large_numbers_of_samples(said: str, samples: int) -> None:
    text = f"# Samples: {said} of event 'cycles:ppp'\n 60.00%  a  [k] run\n"
    found = reported(text, "x")
    assert (found.samples, found.event) == (samples, "cycles")


def test_a_tracepoint_keeps_its_name() -> None:
    text = "# Samples: 3 of event 'sched:sched_switch'\n 60.00%  a  [k] run\n"
    assert reported(text, "x").event == "sched:sched_switch"


def test_rows_of_one_symbol_are_added_up_with_and_without_its_callers() -> None:
    text = " 50.00%  20.00%  a  [k] run  -      -\n 10.00%   5.00%  b  [k] run  -      -\n"
    text += " 40.00%   0.00%  a  [H] xen\n"
    found = reported(text, "x")
    run = Symbol("run", "kernel")
    assert (found.whole[run], found.own[run]) == (60, 25)
    assert Symbol("xen", "user") in found.own, "no code of this kernel"
    assert found.cut == pytest.approx(0.4), "by the shares with callers"


@pytest.mark.parametrize(("shares", "cut"), [((60.0, 39.6), 0.0), ((60.0, 39.4), 0.394)])
def test_rounded_shares_of_a_whole_list_are_no_head_of_a_longer_one(
    shares: tuple[float, float], cut: float
) -> None:
    text = "".join(f" {share:.2f}%  a  [k] run{share:.0f}\n" for share in shares)
    assert reported(text, "x").cut == pytest.approx(cut)


def test_a_long_head_before_the_first_row_is_read() -> None:
    assert looks_reported("# cmdline\n" * 150 + " 60.00%  a  [k] run\n")
    with pytest.raises(RequestError, match="perf report listed no symbol"):
        reported("# Samples: 12 of event 'cycles'\n", "x")


HEAD = "samples  %        image name               symbol name\n"


def test_opreport_with_addresses_without_images_and_without_samples() -> None:
    with_vma = (
        f"vma      {HEAD}c0100000 30  30.0000  vmlinux  schedule\n\nc0200000 70  70.0000  a.out  main\n"
    )
    found = oprofiled(with_vma, "x")
    assert found.own == {Symbol("schedule", "kernel"): 30, Symbol("main", "user"): 70}
    assert (found.samples, found.places, found.cut) == (100, 4, 0)
    assert oprofiled("samples  %  symbol name\n3 30.0 run\n", "x").own == {Symbol("run"): 30}
    alone = oprofiled("%  symbol name\n30.0 run\n", "x")
    assert (alone.own, alone.samples) == ({Symbol("run"): 30}, 0)
    assert oprofiled("samples % symbol name\n0 0.0 run\n", "x").samples == 0
    assert oprofiled("samples % symbol name\n60 60.0 a\n50 50.0 b\n", "x").samples == 110, "rounded up"


def test_opreport_of_two_events_of_programs_and_of_names_with_blanks() -> None:
    head = "samples  %        samples  %        image name  app name  symbol name\n"
    rows = "60 60.0 7 70.0 vmlinux bash schedule\n40 40.0 3 30.0 a.out a.out Call<int (char)>::spin\n"
    found = oprofiled(head + rows, "x")
    assert found.own == {Symbol("schedule", "kernel"): 60, Symbol("Call<int (char)>::spin", "user"): 40}
    assert (found.samples, found.notes) == (100, ("of 2 events the first is shown",))
    assert oprofiled(f"{HEAD}3 30.0 a.out\n", "x").own == {Symbol("a.out"): 30}, "no image is printed"


def test_a_line_of_opreport_that_is_none_is_named() -> None:
    assert looks_oprofiled("CPU: Core 2\n" + HEAD) and not looks_oprofiled("CPU: Core 2\n")
    with pytest.raises(RequestError, match="x:3: 'nonsense' is not a line of opreport"):
        oprofiled(f"CPU: Core 2\n{HEAD}nonsense\n", "x")
    with pytest.raises(RequestError, match="opreport listed no symbol"):
        oprofiled(HEAD, "x")


def test_functions_that_were_only_counted_have_no_times() -> None:
    found = traced("  Function   Hit\n  --------   ---\n  schedule   3\n", "x")
    assert (found.calls, found.spent) == ({Symbol("schedule", "kernel"): 3}, {})
