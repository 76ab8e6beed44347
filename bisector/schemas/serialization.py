"""The model's values as JSON values and back, without loss. Records and decisions carry their type's name."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pydantic import TypeAdapter, ValidationError

from bisector.errors import InfrastructureError
from bisector.model import records
from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Conclusion, Decision, Measure
from bisector.model.goal import MODELLED, Goal
from bisector.model.printable import storable
from bisector.model.records import Record
from bisector.schemas.refusal import describe_problems

_GRAPH_COMPRESSION = 3
"""zlib's level: 110,000 commits take 0.1 s and become half as large; higher levels gain little, for SHAs are
random."""

_TYPES: Mapping[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        records.Built,
        records.Booted,
        records.Ran,
        records.RunFailed,
        records.Left,
        records.Marked,
        records.Discarded,
        records.Irrelevant,
        records.Weighed,
        records.SetAside,
        Measure,
        Conclusion,
    )
}


def to_json(value: Record | Decision) -> dict[str, Any]:
    """Return JSON values with the key 'type', and no text that cannot be read back from a database.

    A workload may print anything, a console as well, and both are quoted where a kernel fails.
    """
    return {"type": type(value).__name__, **_storable(_dump(value))}


def record_from(data: Mapping[str, Any]) -> Record:
    """Read what `to_json` wrote. Raises InfrastructureError if it is not a record."""
    value = _typed(data)
    if isinstance(value, Measure | Conclusion):
        raise _unreadable(data, "it is a decision where a record was expected")
    record: Record = value
    return record


def decision_from(data: Mapping[str, Any]) -> Decision:
    """Read what `to_json` wrote. Raises InfrastructureError if it is not a decision."""
    value = _typed(data)
    if not isinstance(value, Measure | Conclusion):
        raise _unreadable(data, "it is a record where a decision was expected")
    return value


def event_from(data: Mapping[str, Any]) -> Record | Decision:
    """Read a record or a decision. Raises InfrastructureError if it is neither."""
    value: Record | Decision = _typed(data)
    return value


def graph_to_json(graph: CommitGraph) -> dict[str, Any]:
    """Return a graph as JSON values."""
    # Here and below by hand: to validate 100,000 tuples one by one takes seconds.
    return {field.name: getattr(graph, field.name) for field in fields(graph)}


def pack_graph(graph: CommitGraph) -> bytes:
    """Return a graph as compressed JSON with a checksum; equal graphs give equal bytes."""
    return zlib.compress(json.dumps(graph_to_json(graph)).encode(), level=_GRAPH_COMPRESSION)


def unpack_graph(packed: bytes) -> CommitGraph:
    """Read what `pack_graph` wrote. Raises ValueError for anything else."""
    try:
        data = json.loads(zlib.decompress(packed))
        graph = CommitGraph(
            shas=tuple(data["shas"]),
            parents=tuple(map(tuple, data["parents"])),
            candidate=tuple(data["candidate"]),
            good=data["good"],
            bad=data["bad"],
            merge_bases=tuple(data["merge_bases"]),
            untestable={int(k): v for k, v in data["untestable"].items()},
            weights={int(k): v for k, v in data["weights"].items()},
        )
    except (zlib.error, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
    if not len(graph.shas) == len(graph.parents) == len(graph.candidate):
        raise ValueError("its columns differ in length")
    return graph


def checked_graph_from(data: object) -> CommitGraph:
    """Read a graph that somebody else may have written. Raises ValidationError."""
    return _adapter(CommitGraph).validate_python(data)  # type: ignore[no-any-return]


def goal_to_json(goal: Goal) -> dict[str, Any]:
    """Return a goal as JSON values."""
    return _dump(goal)


_NOT_IDENTIFYING = ("find", "unit", "modelled", "fresh_seeds")
"""Parts of a goal that earlier versions did not know; each follows from the rest of a request."""


def identifying(goal: Mapping[str, Any]) -> dict[str, Any]:
    """Return what identifies a goal: without what earlier versions did not know, or say of a unit."""
    same = {name: value for name, value in goal.items() if name not in _NOT_IDENTIFYING}
    if isinstance(metric := same.get("metric"), dict):
        same["metric"] = {**metric, "unit": str(metric.get("unit", "")).removeprefix(MODELLED)}
    return same


def goal_from(data: Mapping[str, Any]) -> Goal:
    """Read what `goal_to_json` wrote. Raises InfrastructureError."""
    try:
        return _adapter(Goal).validate_python(data)  # type: ignore[no-any-return]
    except ValidationError as error:
        raise _unreadable({"type": "Goal"}, describe_problems(error)) from error


def conclusion_from(data: Mapping[str, Any]) -> Conclusion:
    """Read a conclusion that `to_json` wrote."""
    value = decision_from(data)
    if not isinstance(value, Conclusion):
        raise _unreadable(data, "it is not a conclusion")
    return value


def _storable(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {_storable(k): _storable(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_storable(v) for v in value]
    return value


def _dump(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any of the model's dataclasses
    return _adapter(value.__class__).dump_python(value, mode="json")  # type: ignore[no-any-return]


def _typed(data: Mapping[str, Any]) -> Any:  # noqa: ANN401 - one of _TYPES
    values = dict(data)
    name = str(values.pop("type", ""))
    try:
        return _adapter(_TYPES[name]).validate_python(values)
    except KeyError as error:
        raise _unreadable(data, "there is no such type") from error
    except ValidationError as error:
        raise _unreadable(data, describe_problems(error)) from error


def _unreadable(data: Mapping[str, Any], reason: str) -> InfrastructureError:
    return InfrastructureError(
        f"the stored value of type '{data.get('type', '')}' cannot be read",
        details=reason,
        cure="it was written by another version of perfbisect: use that one, or start anew",
    )


_adapters: dict[str, TypeAdapter[Any]] = {}


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Return the type's adapter, made once: making one takes milliseconds."""
    if kind.__name__ not in _adapters:
        _adapters[kind.__name__] = TypeAdapter(kind)
    return _adapters[kind.__name__]
