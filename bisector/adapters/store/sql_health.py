"""Health checks of testbeds in a SQL database, and when each testbed was used last."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from bisector.adapters.store.database import Database
from bisector.model.machines.health import HealthPoint, Outcome


class SqlHealth:
    """store_ports.HealthStore in the database of the bisections."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_point(
        self,
        testbed: str,
        kernel: Mapping[str, str],
        outcome: Outcome,
        words: str,
        values: Sequence[float] = (),
    ) -> None:
        """Keep a boot of a health check, made now."""
        self._database.execute(
            "INSERT INTO health_points (testbed, number, at, kernel, outcome, words, measured) "
            "SELECT :testbed, coalesce(max(number), 0) + 1, seconds_now(), :kernel, :outcome, :words, "
            ":values FROM health_points WHERE testbed = :testbed",
            testbed=testbed,
            kernel=json.dumps(dict(kernel), sort_keys=True),
            outcome=outcome,
            words=words,
            values=json.dumps(list(values)),
        )

    def points(self, testbed: str) -> Sequence[HealthPoint]:
        """Return all boots of a testbed's health checks, oldest first."""
        rows = self._database.execute(
            "SELECT at, kernel, outcome, words, measured FROM health_points WHERE testbed = :testbed "
            "ORDER BY number",
            testbed=testbed,
        )
        return [
            HealthPoint(
                testbed=testbed,
                at=row["at"],
                kernel=json.loads(row["kernel"]),
                outcome=row["outcome"],
                words=row["words"],
                values=tuple(json.loads(row["measured"])),
            )
            for row in rows
        ]

    def forget_points(self, testbed: str) -> None:
        """Forget a testbed's health checks: it has changed, and its next boots are the reference."""
        self._database.execute("DELETE FROM health_points WHERE testbed = :testbed", testbed=testbed)

    def note_use(self, testbed: str) -> None:
        """Write down that a testbed was used until now."""
        self._database.execute(
            "INSERT INTO testbed_uses (testbed, at) VALUES (:testbed, seconds_now()) "
            "ON CONFLICT (testbed) DO UPDATE SET at = excluded.at",
            testbed=testbed,
        )

    def last_use(self, testbed: str) -> float | None:
        """Return when a testbed was used last, None where that is not recorded."""
        rows = self._database.execute("SELECT at FROM testbed_uses WHERE testbed = :testbed", testbed=testbed)
        return float(rows[0]["at"]) if rows else None
