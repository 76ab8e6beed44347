"""What machines and the database saw while workers were hurt, and what must hold of that.

A machine writes a line for each act that a worker does to it, with the epoch of the worker's lease. The
database has triggers that write down who wrote an event, and when an executor was fenced. Neither asks the
engine.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bisector.adapters.store.sql_store import SqlStore
from bisector.model.records import Booted, Ran
from tests.campaign.record_checks import repeated_records

FOLDER = "WATCHED_FOLDER"
REFUSED = "refused"
"""File: a line for each write that was refused because its lease was lost."""
CLOCK = "clock"
"""Beginning of files: by how many seconds the clock of a process is wrong."""

AUDIT = """
CREATE TABLE audit (at double precision, writer text, what text);
CREATE FUNCTION audit() RETURNS trigger AS $$ BEGIN
    INSERT INTO audit VALUES (extract(epoch FROM clock_timestamp()), current_setting('application_name'),
                              TG_TABLE_NAME);
    RETURN NULL;
END $$ LANGUAGE plpgsql;
CREATE FUNCTION audit_fence() RETURNS trigger AS $$ BEGIN
    IF NEW.fenced = 1 AND OLD.fenced = 0 THEN
        INSERT INTO audit VALUES (extract(epoch FROM clock_timestamp()), NEW.name, 'fenced');
    END IF;
    RETURN NULL;
END $$ LANGUAGE plpgsql;
CREATE FUNCTION audit_join() RETURNS trigger AS $$ BEGIN
    INSERT INTO audit VALUES (extract(epoch FROM clock_timestamp()), NEW.name, 'joined');
    RETURN NULL;
END $$ LANGUAGE plpgsql;
CREATE TRIGGER audit AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION audit();
CREATE TRIGGER audit_join AFTER INSERT ON executors FOR EACH ROW EXECUTE FUNCTION audit_join();
CREATE TRIGGER audit AFTER UPDATE ON executors FOR EACH ROW EXECUTE FUNCTION audit_fence();
"""
"""A fenced executor's row is locked by its own writes, so none of them can be after the fence's line."""


_MAY_BE = re.compile("built [0-9]+ times|.* was left 0 times")
"""What is no violation with several workers: each has a cache of its own here and builds for itself, and one
may die with a live boot after another has concluded the bisection."""


class Seen(NamedTuple):
    """One act. at: monotonic seconds of the host; what: 'boot', 'run', 'ran' or 'leave'; run: its index."""

    at: float
    pid: int
    epoch: int
    what: str
    bisection: str
    boot: str
    run: int

    def line(self) -> bytes:
        """Return it as one line."""
        return (" ".join(map(str, self)) + "\n").encode()

    @classmethod
    def read(cls, folder: Path) -> dict[str, list[Seen]]:
        """Return what each machine saw, in order."""
        seen = {}
        for path in sorted(folder.glob("machine-*")):
            words = [line.split() for line in path.read_text().splitlines()]
            seen[path.name.removeprefix("machine-")] = sorted(
                cls(float(at), int(pid), int(epoch), what, bisection, boot, int(run))
                for at, pid, epoch, what, bisection, boot, run in words
            )
        return seen


def used_by_two(machines: Mapping[str, Sequence[Seen]]) -> Iterator[str]:
    """Yield each act of a worker on a machine that was another worker's already, by a higher epoch.

    The first boot of an epoch ends whatever the one before left there; what a stale worker still waits for
    then is lost for it. A boot or a run that it begins afterwards disturbs the other's.
    """
    for name, acts in machines.items():
        newest, owner = 0, 0
        for act in acts:
            if act.what not in ("boot", "run"):
                continue
            if act.epoch < newest:
                yield f"machine {name}: {act} though epoch {newest} had it"
            elif act.epoch == newest and act.pid != owner:
                yield f"machine {name}: {act} though process {owner} had that epoch"
            newest, owner = act.epoch, act.pid


def stale_writes(audit: Iterable[tuple[float, str, str]]) -> Iterator[str]:
    """Yield what was written by a process that counted as dead. audit: its rows, see AUDIT.

    Each worker has a name of its own; one that was fenced may join again.
    """
    dead: set[str] = set()
    for at, name, what in sorted(audit):
        if what == "fenced":
            dead.add(name)
        elif what == "joined":
            dead.discard(name)
        elif name in dead:
            yield f"{name} wrote to {what} at {at:.3f}, after it was fenced"


def lost_or_repeated(store: SqlStore, machines: Mapping[str, Sequence[Seen]], strikes: int) -> Iterator[str]:
    """Yield runs that are not stored once: those that machines ended and no record holds are the strikes'."""
    ended = Counter(
        (s.bisection, s.boot, s.run) for acts in machines.values() for s in acts if s.what == "ran"
    )
    stored: Counter[tuple[str, str, int]] = Counter()
    for summary in store.list():
        rows = sorted([*store.records(summary.id), *store.decisions(summary.id)], key=lambda row: row[0])
        repeated = repeated_records(rows)
        yield from (f"{summary.id}: {said}" for said in repeated if not _MAY_BE.match(said))
        if [number for number, _ in rows] != list(range(1, len(rows) + 1)):
            yield f"{summary.id}: numbers are missing"
        stored.update((summary.id, r.boot, r.index) for _, r in rows if isinstance(r, Ran))
    yield from (f"stored {n} times: {run}" for run, n in stored.items() if n > 1)
    yield from (f"stored, but no machine ended it: {run}" for run in stored - ended)
    lost, most = (ended - stored).total(), strikes * len(machines)
    if lost > most:
        yield f"{lost} runs were ended and not stored, by {strikes} strikes on {len(machines)} machines"


def mingled(store: SqlStore) -> Iterator[str]:
    """Yield testbeds on which the recorded runs of two boots mingle, by the order of their numbers."""
    for summary in store.list():
        last: dict[str, str] = {}
        left: dict[str, set[str]] = defaultdict(set)
        testbed = {}
        for _, record in store.records(summary.id):
            if isinstance(record, Booted):
                testbed[record.boot] = record.testbed
            elif isinstance(record, Ran):
                where = testbed[record.boot]
                if record.boot in left[where]:
                    yield f"{summary.id}: runs of {record.boot} on {where} mingle with another boot's"
                if last.get(where, record.boot) != record.boot:
                    left[where].add(last[where])
                last[where] = record.boot
