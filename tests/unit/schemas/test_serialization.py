"""Stored records, decisions and graphs: what cannot be read is told in our words, wherever it is damaged."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest

from bisector.adapters.store.rows import parse_object
from bisector.errors import InfrastructureError
from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Conclusion, Ending, Measure
from bisector.model.records import Booted, Built, RunFailed
from bisector.schemas.serialization import (
    conclusion_from,
    decision_from,
    pack_graph,
    record_from,
    to_json,
    unpack_graph,
)

BUILT = to_json(Built(1, True, 60.0, binary="a"))
MEASURE = to_json(Measure(1, 2, "search", "why"))


def test_records_and_decisions_are_read_back() -> None:
    assert record_from(BUILT) == Built(1, True, 60.0, binary="a")
    assert decision_from(MEASURE) == Measure(1, 2, "search", "why")
    fresh = Measure(1, 2, "search", "why", fresh_seed=True)
    assert decision_from(to_json(fresh)) == fresh
    booted = Booted("b", 1, "t", True, 5.0, 0.0, fresh_seed=True)
    assert record_from(to_json(booted)) == booted
    ended = Conclusion(Ending.INCONCLUSIVE, "no time left")
    assert conclusion_from(to_json(ended)) == ended


def test_what_earlier_versions_stored_had_the_random_numbers_of_all_boots() -> None:
    for written, read in (
        (to_json(Measure(1, 2, "search", "why")), decision_from),
        (to_json(Booted("b", 1, "t", True, 5.0, 0.0)), record_from),
    ):
        assert written.pop("fresh_seed") is False
        assert to_json(read(written)) == {**written, "fresh_seed": False}


def test_a_workload_that_printed_garbage_leaves_records_that_can_be_read() -> None:
    """One NUL in what a failed run printed made 'report', 'show' and 'resume' call the state file damaged."""
    said = "it printed:\nBW\0\ud800 12 MB/s"
    kept = "it printed:\nBW\ufffd? 12 MB/s"
    for written, read in (
        (RunFailed("b", said, said), RunFailed("b", kept, kept)),
        (
            Booted("b", 1, "t", False, 5.0, 0.0, facts={"cmdline": said}, details=said),
            Booted("b", 1, "t", False, 5.0, 0.0, facts={"cmdline": kept}, details=kept),
        ),
        (Built(1, False, 5.0, details=said), Built(1, False, 5.0, details=kept)),
    ):
        assert record_from(parse_object(json.dumps(to_json(written)))) == read


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no type": ({"commit": 1}, "there is no such type"),
    "another type": (BUILT | {"type": "Demolished"}, "there is no such type"),
    "a word for a number": (BUILT | {"seconds": "long"}, "seconds: must be a number (got 'long')"),
    "a key missing": ({"type": "Built", "ok": True, "seconds": 1.0}, "commit: is missing"),
    "a decision": (MEASURE, "it is a decision where a record was expected"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_record(name: str) -> None:
    data, words = WRONG[name]
    with pytest.raises(InfrastructureError, match="cannot be read") as caught:
        record_from(data)
    assert caught.value.details == words


def test_what_is_no_decision_and_no_conclusion() -> None:
    with pytest.raises(InfrastructureError) as caught:
        decision_from(BUILT)
    assert caught.value.details == "it is a record where a decision was expected"
    with pytest.raises(InfrastructureError) as caught:
        conclusion_from(MEASURE)
    assert caught.value.details == "it is not a conclusion"


GRAPH = CommitGraph(
    shas=("a" * 40, "b" * 40, "c" * 40, "d" * 40),
    parents=((), (0,), (0,), (1, 2)),
    candidate=(False, True, True, True),
    good=0,
    bad=3,
    merge_bases=(0,),
    untestable={2: "no Linux: ü"},
    weights={1: 1e-6},
)
AS_STORED_SINCE_VERSION_1: dict[str, Any] = {
    "shas": ["a" * 40, "b" * 40, "c" * 40, "d" * 40],
    "parents": [[], [0], [0], [1, 2]],
    "candidate": [False, True, True, True],
    "good": 0,
    "bad": 3,
    "merge_bases": [0],
    "untestable": {"2": "no Linux: ü"},
    "weights": {"1": 1e-6},
}


def packed(data: object) -> bytes:
    return zlib.compress(json.dumps(data).encode(), level=3)


def test_a_graph_is_read_as_it_was_and_its_bytes_are_those_of_earlier_versions() -> None:
    assert unpack_graph(pack_graph(GRAPH)) == GRAPH
    assert pack_graph(GRAPH) == packed(AS_STORED_SINCE_VERSION_1), "the store knows a graph by its checksum"


def test_damage_of_any_byte_is_noticed() -> None:
    whole = pack_graph(GRAPH)
    for at in range(len(whole)):
        damaged = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        with pytest.raises(ValueError):
            unpack_graph(damaged)
        with pytest.raises(ValueError):
            unpack_graph(whole[:at])


@pytest.mark.parametrize(
    "data",
    [
        [],
        {},
        {**AS_STORED_SINCE_VERSION_1, "parents": None},
        {**AS_STORED_SINCE_VERSION_1, "weights": [1]},
        {**AS_STORED_SINCE_VERSION_1, "candidate": [True]},
    ],
)
def test_what_is_no_graph_is_refused(data: object) -> None:
    with pytest.raises(ValueError):
        unpack_graph(packed(data))
