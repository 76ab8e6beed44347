"""What a mail tells of the machines that measured."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest

from bisector.model.records import Booted, Record
from bisector.report.mail import culprit_mails, measured_on
from bisector.report.report_model import Material
from tests.support.report_material import demo, two_levels

SOUND = demo()
assert SOUND.conclusion is not None
FOUND = SOUND.conclusion.findings[0]


def test_several_machines_are_told_apart_by_what_they_are() -> None:
    """The names of testbeds stood in mails to maintainers, beside what the machine of the last boot is."""
    models = {"fast": "A CPU", "slow": "Another CPU"}
    records: list[tuple[int, Record]] = [
        (n, replace(one, facts={"cpu.model": models[one.testbed]}) if isinstance(one, Booted) else one)
        for n, one in two_levels().records
    ]
    text = culprit_mails.upstream_text(
        replace(SOUND, records=records), FOUND, reporter="Lab <lab@y.org>", link="x"
    )
    machines = "test machines:\n\n\tmachine 1: A CPU\n\tmachine 2: Another CPU\n\nparameters:\n"
    assert machines in text
    tables = [line for line in text.splitlines() if line.startswith("testbed: ")]
    assert tables == ["testbed: machine 1", "testbed: machine 2"]
    assert "The numbers are those of the machines above." in text
    assert not any(name in text for name in ("testbed: fast", "testbed: slow"))


def test_a_testbed_that_measured_one_of_both_has_no_part_in_the_table() -> None:
    """It was "The two kernels have no metric in common", for only the one side had testbeds with names."""
    gone = {
        one.boot
        for _, one in two_levels().records
        if isinstance(one, Booted) and (one.commit, one.testbed) == (2, "slow")
    }
    records = [
        (n, replace(one, facts={"cpu.model": f"CPU of {one.testbed}"}) if isinstance(one, Booted) else one)
        for n, one in two_levels().records
        if getattr(one, "boot", "") not in gone
    ]
    text = culprit_mails.upstream_text(replace(SOUND, records=records), FOUND, reporter="L", link="x")
    assert "+5.0%     105.00        real" in text and "testbed: " not in text
    assert "test machine: CPU of fast\n" in text, "not that of its last boot"


@pytest.mark.parametrize(
    ("online", "said"),
    [("0", "1 CPU"), ("0-1", "2 CPUs"), ("0-15", "16 CPUs"), ("0,2-3", "3 CPUs"), ("", ""), ("many", "")],
)
def test_the_cpus_of_the_machine_are_counted(online: str, said: str) -> None:
    """The kernel lists them: a machine with one was said to have '0 CPUs', another '0-15 CPUs'."""
    kept = {"cpus.online": online, "cpu.model": "Some CPU"}
    with patch.object(Material, "facts", return_value=kept):
        assert measured_on.machine_of(SOUND, 3) == ", ".join(filter(None, (said, "Some CPU")))


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ("65743288 kB", "62.7 GiB"),
        ("524288 kB", "512 MiB"),
        ("1048576 kB", "1.0 GiB"),
        ("much kB", "much kB"),
        (f"{'5' * 5000} kB", f"{'5' * 5000} kB"),
    ],
)
def test_the_memory_of_the_machine_is_told_in_its_unit(kept: str, said: str) -> None:
    with patch.object(Material, "facts", return_value={"memory.total": kept}):
        assert measured_on.machine_of(SOUND, 3) == f"{said} of memory"
