"""Which of two processes a test belongs to, for pytest-xdist."""

from __future__ import annotations

from xdist.scheduler.loadscope import LoadScopeScheduling

APART = (
    "tests/unit/",
    "tests/golden/",
    "tests/bad_input/",
    "tests/contract/test_alert_contract.py",
    "tests/contract/test_artefact_contract.py",
    "tests/contract/test_coordinator_contract.py",
    "tests/contract/test_outbox_contract.py",
    "tests/contract/test_series_contract.py",
    "tests/contract/test_source_contract.py",
    "tests/contract/test_store_contract.py",
    "tests/integration/git_repositories/",
    "tests/integration/mail/",
    "tests/integration/pages/",
    "tests/integration/series/",
    "tests/integration/web/",
    "tests/integration/test_bench_runs.py",
    "tests/integration/test_cli_on_fakes.py",
    "tests/integration/test_installed_wheel.py",
    "tests/integration/test_postgresql.py",
    "tests/integration/test_queue_on_fakes.py",
    "tests/integration/test_simulate_killed.py",
    "tests/integration/test_workers.py",
)
"""Tests that share nothing with others: no guest, no machine, no user of this host. Servers have ports of
their own. The others take the longest, one after the other, so what need not be among them is not."""
BUILDS = "tests/integration/builds/"
"""Its tests compile and boot nothing. They share a user of this host with each other, so they stay together;
what uses the machine takes the longest, and these six minutes are no part of it."""


class MachineTestsTogether(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist has no annotations
    """Tests that use the machine run one after the other, in one process, and so do builds.

    All others run by files, beside them.

    Marks of groups (`xdist_group`) would say it, but pytest-xdist 3.8 does not see them under pytest 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        return scope(nodeid)


def scope(nodeid: str) -> str:
    """Return what a test stays together with. nodeid: 'tests/FOLDER/.../FILE.py::NAME'."""
    file = nodeid.partition("::")[0]
    if file.startswith(BUILDS):
        return "builds"
    return file if file.startswith(APART) else "machine"
