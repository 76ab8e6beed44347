"""What differs between two kernels besides code, and what a reader is told of it."""

from __future__ import annotations

import pytest

from bisector.model.facts import KernelFacts
from bisector.report.kernel_differences import changed_options, compare, preemption


def test_a_culprit_that_acts_through_kconfig_is_said_so() -> None:
    found = compare(
        KernelFacts(options={"PREEMPT_NONE": "y"}, lost=("PREEMPT_RT",)),
        KernelFacts(options={"PREEMPT_RT": "y"}),
        {},
        {},
    )
    said = " ".join(found.sentences("commit abc"))
    assert "CONFIG_PREEMPT_RT becomes selectable with commit abc" in said
    assert "acts through the configuration" in said
    assert "from none (PREEMPT_NONE) to fully preemptible (PREEMPT_RT)" in said


def test_facts_that_follow_the_size_of_the_kernel_are_no_difference() -> None:
    one = KernelFacts(options={"SMP": "y"})
    found = compare(
        one,
        one,
        {"sysctl.fs.file-max": "49000", "clocksource": "tsc", "mitigation.mds": "Vulnerable"},
        {"sysctl.fs.file-max": "48990", "clocksource": "hpet", "mitigation.mds": "Mitigation: clear"},
    )
    assert found.sysctls == ()
    assert found.settings == (("clocksource", "tsc", "hpet"),)
    assert found.mitigations == (("mitigation.mds", "Vulnerable", "Mitigation: clear"),)
    assert "clocksource changes from tsc to hpet" in found.sentences("commit abc")[0]


def test_what_a_boot_took_and_our_own_parameter_are_no_difference() -> None:
    one = KernelFacts(options={"SMP": "y"})
    said = "root=/dev/sda1{} perfbisect.kernel={}"
    before = {"cmdline": said.format(" quiet", "1f"), "boot.times": "told in 3 s", "console.state": "heard"}
    after = {"cmdline": said.format(" quiet", "2e"), "boot.times": "told in 9 s", "console.state": "lost"}
    assert compare(one, one, before, after).settings == ()
    changed = compare(one, one, before, after | {"cmdline": said.format("", "2e")}).settings
    assert changed == (("cmdline", "root=/dev/sda1 quiet", "root=/dev/sda1"),)


def test_an_option_that_is_no_longer_granted() -> None:
    before = KernelFacts(options={"PREEMPT_RT": "y"})
    found = compare(before, KernelFacts(options={"SMP": "y"}, lost=("CONFIG_PREEMPT_RT",)), {}, {})
    assert found.withdrawn == ("PREEMPT_RT",)
    assert "CONFIG_PREEMPT_RT is no longer granted with commit abc" in found.sentences("commit abc")[0]


def test_other_options_are_counted_only_if_nothing_more_is_known() -> None:
    found = compare(KernelFacts(options={"A": "y"}), KernelFacts(options={"A": "m", "B": "y"}), {}, {})
    assert found.options == (("A", "y", "m"), ("B", "absent", "y"))
    assert found.sentences("x") == [
        "The effective configuration differs in 2 options: part of the effect may come from there."
    ]


def test_what_describes_the_toolchain_is_no_option() -> None:
    assert changed_options({"CC_VERSION_TEXT": "gcc 11"}, {"CC_VERSION_TEXT": "gcc 12"}) == ()


def test_a_kernel_that_never_booted_has_no_facts_to_compare() -> None:
    known = KernelFacts(options={"A": "y"})
    found = compare(known, known, {"clocksource": "tsc"}, {})
    assert (found.settings, found.known) == ((), True)
    assert not compare(known, KernelFacts(), {}, {}).known


@pytest.mark.parametrize(
    ("before", "after", "differs"),
    [("49000 kB", "48600 kB", False), ("49000 kB", "48400 kB", True), ("1", "2", True), ("a 1", "1", True)],
)
def test_numbers_within_a_percent_are_equal(before: str, after: str, differs: bool) -> None:
    one = KernelFacts(options={"A": "y"})
    found = compare(one, one, {"memory.total": before}, {"memory.total": after})
    assert bool(found.settings) == differs


@pytest.mark.parametrize(
    ("options", "model"),
    [
        ({}, "none"),
        ({"PREEMPT": "y", "PREEMPT_DYNAMIC": "y"}, "preemptible (PREEMPT), switchable at boot"),
        ({"PREEMPT": "y", "PREEMPT_RT": "y"}, "fully preemptible (PREEMPT_RT)"),
        ({"PREEMPT_VOLUNTARY": "y"}, "voluntary (PREEMPT_VOLUNTARY)"),
    ],
)
def test_preemption_models(options: dict[str, str], model: str) -> None:
    assert preemption(options) == model
