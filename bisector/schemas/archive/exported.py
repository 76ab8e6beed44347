"""The documents in the archive of an exported bisection: written here, and read as foreign text.

`bisection.json` says what it is, `graph.json` holds the commits, `events.jsonl` a record or decision a line,
in the order in which they happened. The bisection's files lie below `files/`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ValidationError

from bisector.errors import PerfbisectError, RequestError
from bisector.model.artefacts import KEY_PATTERN, is_boot_id
from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Conclusion, Decision, Measure
from bisector.model.printable import cut
from bisector.model.records import (
    Booted,
    Built,
    Discarded,
    FunctionEvidence,
    Irrelevant,
    Left,
    Marked,
    Ran,
    Record,
    RunFailed,
    SetAside,
    Weighed,
)
from bisector.model.stored_bisection import TO_EXECUTE, Stored
from bisector.schemas import serialization
from bisector.schemas.archive.limits import (
    CURE,
    MAX_REASON_CHARACTERS,
    Time,
    check_request,
    with_short_texts,
    wrong_number,
)
from bisector.schemas.documents.document import MAX_JSON_BYTES, is_file, read_document, shown, shown_path
from bisector.schemas.documents.json_reader import parse_json, read_json
from bisector.schemas.lab import HOST_NAME
from bisector.schemas.loading import Spec, load_json, matching
from bisector.schemas.request import Accepted

HEAD, GRAPH, EVENTS, FILES = "bisection.json", "graph.json", "events.jsonl", "files"

ARCHIVE_FORMAT = 1
"""Raised when an older perfbisect could not read the archive, or would misread it."""
MAX_BYTES: Mapping[str, int] = {HEAD: MAX_JSON_BYTES, GRAPH: 1 << 30, EVENTS: 1 << 30}
"""Of the documents. A commit of the graph takes 75 bytes; an event a few hundred bytes, with a
kernel of 5,000 options 125 kB."""
MAX_FOREIGN_BYTES: Mapping[str, int] = {HEAD: MAX_JSON_BYTES, GRAPH: 32 << 20, EVENTS: 128 << 20}
"""Of documents that came over the network. The 111,556 commits of v2.6.18..v2.6.30 take 8 MiB as a graph, and
a thousand such kernels 120 MiB as events. Lists in lists become 20 times their size in memory."""
_MAX_EVENT_BYTES = 16 << 20
"""Of one event: the numbers of a million commits that cannot change the kernel take 8 MB."""

_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?|[0-9A-Za-z.+~:^_-]{1,255}@[0-9a-f]{16}")
"""Ids of commits, and of listed kernels (`commit_graph.listed_id`)."""
_IS_NAME: Mapping[str, Callable[[str], bool]] = {
    "boot": is_boot_id,
    "testbed": lambda name: HOST_NAME.fullmatch(name) is not None,
    "kernel": lambda name: re.fullmatch(KEY_PATTERN, name) is not None,
}


class Head(Spec):
    """`bisection.json`. created: seconds since the epoch; perfbisect: the version that wrote it."""

    format: Literal[1]
    perfbisect: str
    id: Annotated[
        str, matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", "an id of letters, digits, '.', '_', '-'")
    ]
    created: Time
    status: Literal["new", "queued", "running", "paused", "interrupted", "failed", "cancelled", "done"]
    request: Annotated[Accepted, AfterValidator(check_request)]
    conclusion: dict[str, Any] | None = None


def write(folder: Path, stored: Stored, events: Iterable[Record | Decision], version: str) -> None:
    """Write the documents of a bisection into a folder. version: of this perfbisect."""
    conclusion = stored.conclusion and serialization.to_json(stored.conclusion)
    head = {
        "format": ARCHIVE_FORMAT,
        "perfbisect": version,
        "id": stored.id,
        "created": stored.created,
        "status": stored.status,
        "request": json.loads(stored.request),
        "conclusion": conclusion,
    }
    (folder / HEAD).write_text(json.dumps(head, indent=2) + "\n", encoding="utf-8")
    (folder / GRAPH).write_text(json.dumps(serialization.graph_to_json(stored.graph)), encoding="utf-8")
    with (folder / EVENTS).open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(serialization.to_json(event)) + "\n" for event in events)


def read(
    folder: Path, max_bytes: Mapping[str, int] = MAX_BYTES, archive: str = ""
) -> tuple[Stored, list[Record | Decision]]:
    """Read what `write` wrote, perhaps changed by somebody since. max_bytes: of each document.

    archive: what errors name in place of the folder that it was unpacked into. Raises RequestError.
    """
    whole = archive or shown_path(folder)
    for name in (HEAD, GRAPH, EVENTS):
        if not is_file(folder / name):
            raise RequestError(
                f"{whole}: {name} is missing: not what 'perfbisect export' wrote", cure="name what it wrote"
            )
    names = {name: f"{whole}: {name}" for name in (HEAD, GRAPH, EVENTS)}
    head = load_json(folder / HEAD, Head, names[HEAD])
    graph = _graph(folder / GRAPH, max_bytes[GRAPH], names[GRAPH])
    try:
        head.request.the_goal()  # every command that shows the bisection reads it
        ended = with_short_texts(head.conclusion)
        conclusion = None if ended is None else serialization.conclusion_from(ended)
    except PerfbisectError as error:
        raise _damaged(names[HEAD], error.message, error.details) from error
    events = list(_events(folder / EVENTS, graph, max_bytes[EVENTS], names[EVENTS]))
    status = "interrupted" if head.status in TO_EXECUTE else head.status
    stored = Stored(head.id, head.created, head.request.model_dump_json(), status, graph, conclusion)
    fits = conclusion is None or _all_in(graph, _commits(conclusion))
    if not fits or (conclusion is None) == (status == "done"):
        raise _damaged(names[HEAD], "the conclusion fits neither the commits nor the status")
    return stored, events


def _graph(path: Path, max_bytes: int, name: str) -> CommitGraph:
    try:
        graph = serialization.checked_graph_from(read_json(path, max_bytes, name))
    except ValidationError as error:
        raise _damaged(name, "these are no commits") from error
    size = len(graph.shas)
    nodes = range(size)
    sound = (
        len(graph.parents) == len(graph.candidate) == len(set(graph.shas)) == size
        and all(map(_SHA.fullmatch, graph.shas))
        and all(0 <= parent < child for child, parents in enumerate(graph.parents) for parent in parents)
        and {graph.good, graph.bad, *graph.merge_bases, *graph.untestable, *graph.weights} <= set(nodes)
    )
    if not sound:
        raise _damaged(name, "its commits do not fit together")
    reasons = {commit: cut(reason, MAX_REASON_CHARACTERS) for commit, reason in graph.untestable.items()}
    return replace(graph, untestable=reasons)


def _events(path: Path, graph: CommitGraph, max_bytes: int, name: str) -> Iterator[Record | Decision]:
    lines = read_document(path, max_bytes, name).splitlines()
    for number, line in enumerate(lines, start=1):
        if len(line) > _MAX_EVENT_BYTES:
            raise _damaged(name, f"line {number}: larger than {_MAX_EVENT_BYTES >> 20} MiB")
        data = parse_json(line, f"{name}:{number}")
        try:
            event = serialization.event_from(with_short_texts(data) if isinstance(data, dict) else {})
        except PerfbisectError as error:
            raise _damaged(name, f"line {number}: {error.message}", error.details) from error
        if not _all_in(graph, _commits(event)):
            raise _damaged(name, f"line {number}: there is no such commit")
        if isinstance(event, Weighed) and not _fits(event):
            raise _damaged(name, f"line {number}: these are no weights of its commits")
        wrong = _wrong_name(event) or wrong_number(event)
        if wrong:
            raise _damaged(name, f"line {number}: {wrong}")
        yield event


def _all_in(graph: CommitGraph, commits: Iterable[int]) -> bool:
    return all(0 <= commit < len(graph.shas) for commit in commits)


def _commits(event: Record | Decision) -> tuple[int, ...]:
    match event:
        case Built() | Booted() | Marked():
            return (event.commit,)
        case Measure():
            return (event.commit, *(commit for commit, _ in event.suspects))
        case Conclusion():
            found = (commit for f in event.findings for commit in (*f.commits, *f.parents))
            return (*found, *(commit for commit, _ in event.levels))
        case Irrelevant() | Weighed(functions=None):
            return event.commits
        case Weighed(functions=FunctionEvidence() as told):
            return (*event.commits, *told.differ, *told.call, *told.elsewhere)
    return ()


def _fits(event: Weighed) -> bool:
    """Return whether there is a weight for each commit that is one."""
    return len(event.weights) == len(event.commits) and all(0 < one < math.inf for one in event.weights)


def _wrong_name(event: Record | Decision) -> str:
    """Return what is wrong with a name that may become a part of a path; '' if nothing is."""
    for kind, name in _names(event):
        if name is not None and not _IS_NAME[kind](name):
            return f"{shown(name)} is no name of a {kind}"
    return ""


def _names(event: Record | Decision) -> Sequence[tuple[str, str | None]]:
    """Return the boots, testbeds and kernels that an event names, each with what it is."""
    match event:
        case Booted() | Measure():
            return ("boot", event.boot), ("testbed", event.testbed)
        case Ran() | RunFailed() | Left():
            return (("boot", event.boot),)
        case Discarded():
            return ((event.kind, event.name),)
        case SetAside():
            return (("testbed", event.testbed),)
        case Built() if event.kernel is not None:
            return (("kernel", event.kernel.key or None),)  # earlier versions kept none
    return ()


def _damaged(name: str, what: str, details: str = "") -> RequestError:
    return RequestError(f"{name}: {what}", details=details, cure=CURE)
