"""Which kernel runs is proved from its facts; the play itself: tests/integration/test_deploy_over_ssh.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.agent.deploy import boot_facts, verify_kernel
from bisector.errors import InfrastructureError, KernelError
from bisector.ports import Kernel

NOWHERE = Path("/nonexistent")


def kernel(release: str = "6.1.0-x", build_id: str = "abc") -> Kernel:
    return Kernel("", "", "", NOWHERE, NOWHERE, NOWHERE, release, build_id, 0.0, cached=True)


def facts(release: str | None = "6.1.0-x", build_id: str | None = "abc") -> dict[str, str]:
    given = {"uname.release": release, "build_id": build_id}
    return {name: value for name, value in given.items() if value is not None}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (kernel(), facts()),
        (kernel(), facts(build_id=None)),  # before 2.6.23 no kernel shows its build id
        (kernel(), facts(build_id="")),
        (kernel(build_id=""), facts()),
        (kernel(release=""), facts(release="anything")),
        (kernel(release=""), facts()),
    ],
)
def test_this_very_kernel_runs(wanted: Kernel, found: dict[str, str]) -> None:
    verify_kernel(wanted, found)


@pytest.mark.parametrize(
    ("wanted", "found", "words"),
    [
        (kernel(), facts(release="6.1.1"), "another kernel"),
        (kernel(), facts(build_id="abd"), "another kernel"),
        (kernel(build_id=""), facts(release="5.10"), "another kernel"),
        (kernel(), facts(release=None, build_id=None), "does not tell"),
        (kernel(release=""), facts(build_id=None), "does not tell"),
        (kernel(release="", build_id=""), facts(), "does not tell"),
    ],
)
def test_another_kernel_or_an_unknown_one_is_the_testbeds_failure(
    wanted: Kernel, found: dict[str, str], words: str
) -> None:
    with pytest.raises(InfrastructureError, match=words) as caught:
        verify_kernel(wanted, found)
    assert not isinstance(caught.value, KernelError)


def test_the_facts_of_a_boot() -> None:
    found = boot_facts(facts() | {"clocksource": "tsc"}, 3.0, 1.0, NOWHERE)
    assert (found.release, found.build_id, found.seconds, found.overhead_seconds) == (
        "6.1.0-x",
        "abc",
        3.0,
        1.0,
    )
    assert found.facts["clocksource"] == "tsc"
    assert boot_facts({}, 0.0, 0.0, None).release == ""
