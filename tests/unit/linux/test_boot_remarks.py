"""What is told of a boot."""

from __future__ import annotations

import pytest

from bisector.linux.boot_remarks import boot_remarks, boot_text, console_trouble


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, ""),
        ({"console.state": "off"}, ""),
        ({"console.state": "heard"}, ""),
        ({"console.state": "silent"}, "silent: this boot printed nothing there"),
        ({"console.state": "lost", "console.reason": "refused"}, "is not seen (refused)"),
    ],
)
def test_a_console_that_is_not_heard_is_told(facts: dict[str, str], words: str) -> None:
    told = console_trouble(facts)
    assert (words in told["console"]) if words else not told


def test_all_remarks_of_a_boot() -> None:
    facts = {"setting.turbo.error": "no such file", "console.state": "silent"}
    assert sorted(boot_remarks(facts)) == ["console", "turbo"]


@pytest.mark.parametrize(
    ("then", "now", "told"),
    [
        ({"own.release": "6.1-1"}, {"own.release": "6.1-1"}, ""),
        ({"own.build_id": "a"}, {"own.build_id": "a"}, ""),
        ({"own.release": "6.1-1"}, {"own.release": "6.1-2"}, "6.1-1 -> 6.1-2"),
        (
            {"own.release": "6.1-1", "own.build_id": "a"},
            {"own.release": "6.1-1", "own.build_id": "b"},
            "a -> b",
        ),
        ({}, {"own.release": "6.1-2"}, ""),
        ({"own.release": "6.1-1"}, {}, ""),
    ],
)
def test_an_own_kernel_that_somebody_upgraded_is_told(
    then: dict[str, str], now: dict[str, str], told: str
) -> None:
    words = boot_remarks(now, then).get("the machine's own kernel", "")
    assert told in words if told else not words


def test_a_boot_is_told_with_what_its_time_went_into() -> None:
    assert boot_text("6.1.0", {}) == "booted 6.1.0"
    assert boot_text("6.1.0", {"boot.times": "told in 3.0 s"}) == "booted 6.1.0: told in 3.0 s"
