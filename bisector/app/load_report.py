"""Load a stored bisection as the material of a report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bisector.app.artefacts.local_files import with_local_files
from bisector.app.artefacts.shared_files import FACTS, fetch_facts
from bisector.app.execution.current_status import current_status, latest_searches
from bisector.app.execution.reported_workload import reported_workload
from bisector.app.packages.listed_sources import source_of
from bisector.app.planners import planner_of
from bisector.app.wiring import Wiring
from bisector.errors import PerfbisectError, RequestError, nearest
from bisector.model.commit_graph import short_name
from bisector.model.decisions import Conclusion, Measure
from bisector.model.goal import TERMS
from bisector.model.printable import MAX_SUBJECT_CHARACTERS, cut
from bisector.model.records import Booted, Built, Left, Marked, Record
from bisector.report.profiles.explained_effect import MONITOR
from bisector.report.report_model import Commit, Material, named

if TYPE_CHECKING:
    from bisector.model.commit_graph import CommitGraph
    from bisector.model.stored_bisection import Stored, Summary
from bisector.schemas.documents.json_reader import read_own_json
from bisector.schemas.ranges import LAST_TIME
from bisector.schemas.request import Accepted, read_accepted

_MAX_FACT = 4096
"""Characters of a fact of the machine: as many as are kept of a boot's facts."""
_MAX_NAMED = 20
"""Ids in a message: chosen, so that it fits on a screen."""
NAMES = "commits.json"
"""In a bisection's folder: id -> what `Commit` has, of the commits that its report names."""
TOUCHED = "touched.json"
"""In a bisection's folder: id of a culprit -> functions that it changes."""
HOST = "host.json"
"""In a bisection's folder: the host that measured it."""


def find_bisection(wiring: Wiring, wanted: str | None) -> Stored:
    """Return a bisection by id or the unique beginning of one; the latest without a name.

    Raises RequestError if there is none, or more than one.
    """
    store = wiring.store
    if wanted is not None:
        return store.load(find_summary(wiring, wanted).id)
    return store.load(latest_summary(wiring).id)


def latest_summary(wiring: Wiring) -> Summary:
    """Return the summary of the latest bisection that is no night. Raises RequestError: there is none."""
    latest = latest_searches(wiring.store, 1)
    if not latest:
        raise RequestError("there is no bisection yet", cure="perfbisect start --good A --bad B --workload W")
    return latest[0]


def find_summary(wiring: Wiring, wanted: str) -> Summary:
    """Return the summary of a bisection by id or the unique beginning of one. Raises RequestError."""
    matching = wiring.store.list(beginning=wanted)
    exact = [summary for summary in matching if summary.id == wanted]
    if not matching:
        wiring.store.status(wanted)  # raises an error that names the nearest id
    if len(exact or matching) > 1:
        shown = [summary.id for summary in matching[:_MAX_NAMED]]
        more = len(matching) - len(shown)
        raise RequestError(
            f"'{wanted}' is the beginning of several bisections",
            details="\n".join([*shown, *([f"and {more:,} more"] if more else [])]),
            cure="write more of the id",
        )
    return (exact or matching)[0]


def load_material(wiring: Wiring, identity: str | None, *, so_far: bool = False) -> Material:
    """Return all that a report of a bisection needs. Without the repository only the names are missing.

    so_far: add the planner's interim conclusion, which takes it seconds on a long history.
    """
    stored = find_bisection(wiring, identity)
    store = wiring.store
    accepted = read_accepted(stored.request)
    records = with_local_files(wiring, stored.id, store.records(stored.id))
    decisions = store.decisions(stored.id)
    wanted = {stored.graph.good, stored.graph.bad}
    for _, record in records:
        if isinstance(record, Built | Booted | Marked):
            wanted.add(record.commit)
    for _, decision in decisions:
        if isinstance(decision, Measure):
            wanted.add(decision.commit)
    early = _so_far(wiring, stored, accepted, records) if so_far and stored.conclusion is None else None
    known = stored.conclusion or early
    findings = known.findings if known else ()
    for finding in findings:
        wanted |= {*named(finding), *finding.parents}
    alone = {f.commits[0] for f in findings if len(f.commits) == 1}
    proven = {commit for f in findings if f.certified for commit in named(f)}
    folder = wiring.bisection_folder(stored.id)
    if stored.conclusion is not None and not (folder / HOST).exists():
        fetch_facts(wiring, stored.id)
    given = accepted.request.model_dump(mode="json")
    workload = reported_workload(accepted)
    return Material(
        id=stored.id,
        created=stored.created,
        status=current_status(wiring, stored),
        request={name: value for name, value in given.items() if value not in (None, [], False)},
        graph=stored.graph,
        goal=accepted.the_goal(),
        conclusion=stored.conclusion,
        records=records,
        decisions=decisions,
        commits=_named_commits(wiring, accepted, folder, stored.graph.shas, wanted, alone),
        attempt=accepted.attempt,
        touched=_touched(
            accepted.request.repo, folder, records, {i: stored.graph.shas[i] for i in sorted(proven)}
        ),
        metrics=workload.metrics,
        modelled=accepted.cpu.summary() if accepted.cpu is not None else "",
        work=workload.work,
        unable=workload.unable,
        host=_host(folder, accepted.version),
        files={"raw output": str(folder)},
        so_far=early,
        recipe_chosen=accepted.recipe_chosen,
        cut_consoles=_cut_consoles(records),
        priority=stored.priority,
        owner=stored.owner,
        action=stored.action,
    )


def _cut_consoles(records: Sequence[tuple[int, Record]]) -> frozenset[str]:
    """Return the boots whose console printed more than is kept."""
    from bisector.adapters.system.console_log import is_cut

    booted = [record for _, record in records if isinstance(record, Booted)]
    return frozenset(b.boot for b in booted if b.console and is_cut(Path(b.console)))


def _touched(
    repo: str, folder: Path, records: Sequence[tuple[int, Record]], culprits: Mapping[int, str]
) -> dict[int, frozenset[str]]:
    """Return the functions that each of these changes, where what functions execute was counted.

    They are kept in the bisection's folder: git takes seconds for them, and the page is looked at often.
    """
    from bisector.adapters.git.changed_functions import touched_functions
    from bisector.adapters.system.files import write_atomically

    seen = (result for _, record in records if isinstance(record, Left) for result in record.monitors)
    if not any(result.monitor == MONITOR and result.seen for result in seen):
        return {}
    kept = _read_kept(folder, TOUCHED)
    new = {sha for sha in culprits.values() if not isinstance(kept.get(sha), list)}
    try:
        kept |= {sha: sorted(touched_functions(Path(repo), sha)) for sha in new}
        if new and folder.is_dir():
            write_atomically(folder / TOUCHED, json.dumps(kept))
    except PerfbisectError:  # no repository, or no space: the report only lacks its marks
        pass
    known = {index: kept[sha] for index, sha in culprits.items() if isinstance(kept.get(sha), list)}
    return {index: frozenset(map(str, functions)) for index, functions in known.items()}


def _so_far(
    wiring: Wiring, stored: Stored, accepted: Accepted, records: Sequence[tuple[int, Record]]
) -> Conclusion | None:
    """Return the planner's interim conclusion; None while nothing has been measured."""
    from bisector.model.state import fold

    state = fold(stored.graph, accepted.the_goal(), [record for _, record in records])
    if not any(v.samples for v in state.visits):
        return None
    return planner_of(wiring, accepted).so_far(state)


def commit_index(wiring: Wiring, material: Material, rev: str) -> int:
    """Return the index of a commit in the graph, as `find_commit` finds it. Raises RequestError."""
    return find_commit(wiring, material.id, material.graph, material.request, rev)


def find_commit(
    wiring: Wiring, identity: str, graph: CommitGraph, request: Mapping[str, Any], rev: str
) -> int:
    """Return the index of a commit in the graph of a bisection.

    The beginning of an id and the names of the ends are known without the repository. Raises RequestError:
    unknown, or outside of the range.
    """
    called = [i for i, sha in enumerate(graph.shas) if short_name(sha) == rev]
    matching = called or [i for i, sha in enumerate(graph.shas) if sha.startswith(rev)]
    if len(matching) == 1:
        return matching[0]
    terms = TERMS[request.get("find", "regression")]
    ends = {request[terms.old]: graph.good, request[terms.new]: graph.bad}
    if rev in ends:
        return ends[rev]
    if request.get("kernels"):
        raise RequestError(
            f"'{rev}' names no kernel of the bisection {identity}{nearest(rev, map(short_name, graph.shas))}",
            cure=f"'perfbisect show {identity}' lists those tested; any between good and bad can be marked",
        )
    repo = request["repo"]
    try:
        source = wiring.source(repo)
    except PerfbisectError as error:
        raise RequestError(
            f"'{rev}' is not an id of the bisection {identity}, and names cannot be looked up: "
            f"{error.message}",
            details=error.details,
            cure=f"write the beginning of an id; 'perfbisect show {identity}' lists the commits tested",
        ) from error
    sha = source.resolve(rev)
    if sha not in graph.shas:
        raise RequestError(
            f"{rev} ({short_name(sha)}) is not in the range of the bisection {identity}",
            cure=f"'perfbisect show {identity}' lists those tested; any between good and bad can be marked",
        )
    return graph.shas.index(sha)


def _named_commits(
    wiring: Wiring,
    accepted: Accepted,
    folder: Path,
    shas: Sequence[str],
    wanted: Set[int],
    described: Set[int],
) -> dict[int, Commit]:
    """Return what people recognise commits by; a patched one is called by its patches."""
    attempt = accepted.attempt
    own = shas.index(attempt.tried) if attempt is not None and attempt.patches else None
    found = _names(wiring, accepted, folder, shas, sorted(wanted - {own}), described)
    if attempt is not None and own is not None:
        found[own] = Commit(attempt.tried, attempt.tried_name())
    return found


def _names(
    wiring: Wiring,
    accepted: Accepted,
    folder: Path,
    shas: Sequence[str],
    wanted: Sequence[int],
    described: Set[int],
) -> dict[int, Commit]:
    """Return what people recognise commits by; without the repository what was kept in the folder."""
    try:
        source = source_of(wiring, accepted)
        found = source.infos([shas[i] for i in wanted], described={shas[i] for i in described})
    except PerfbisectError:
        kept = _read_kept(folder, NAMES)
        return {i: _kept_commit(shas[i], kept[shas[i]]) for i in wanted if shas[i] in kept}
    return {
        i: Commit(x.sha, x.subject, x.author, x.when, x.describe) for i, x in zip(wanted, found, strict=True)
    }


def _kept_commit(sha: str, kept: object) -> Commit:
    """Return a commit as it was kept: perhaps by somebody who wrote anything there, in an archive."""
    values = kept if isinstance(kept, dict) else {}
    texts = (str(values.get(name, "")) for name in ("subject", "author", "describe"))
    subject, author, describe = (cut(text, MAX_SUBJECT_CHARACTERS) for text in texts)
    when = values.get("when")
    known = isinstance(when, int | float) and 0 <= when <= LAST_TIME
    return Commit(sha, subject, author, float(when or 0) if known else 0.0, describe)


def keep_names(folder: Path, material: Material) -> None:
    """Write down what people recognise commits by, for reports without the repository."""
    from bisector.adapters.system.files import write_atomically

    names = {
        c.sha: {"subject": c.subject, "author": c.author, "when": c.when, "describe": c.describe}
        for c in material.commits.values()
    }
    if names:
        write_atomically(folder / NAMES, json.dumps(names))


def _host(folder: Path, version: str) -> dict[str, str]:
    """Return what was written about the machine when the bisection began, and the version of perfbisect."""
    return {
        "perfbisect": version,
        **{str(k): cut(str(v), _MAX_FACT) for k, v in _read_kept(folder, HOST).items()},
    }


def _read_kept(folder: Path, name: str) -> dict[str, Any]:
    """Return what was kept in a bisection's folder, or what another host gave; a report does without it."""
    return read_own_json(folder / name) or read_own_json(folder.joinpath(*FACTS, name)) or {}
