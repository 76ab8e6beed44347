"""The Phoronix Test Suite: XML, its export, and what is wrong with either."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bisector.adapters.parsers.results import read
from bisector.errors import RequestError
from tests.support.result_samples import boots, only, written


def phoronix(*tests: str) -> str:
    system = "<System><Identifier>6.1</Identifier></System>"
    body = f"{system}{''.join(tests)}"
    return f"<?xml version='1.0'?>\n<!--v10.8.6-->\n<PhoronixTestSuite>{body}</PhoronixTestSuite>"


def phoronix_test(*entries: tuple[str, str, str], name: str = "pts/stream-1.3.4", way: str = "HIB") -> str:
    data = "".join(
        f"<Entry><Identifier>{system}</Identifier><Value>{value}</Value>{more}</Entry>"
        for system, value, more in entries
    )
    about = f"<Identifier>{name}</Identifier><Description>Type: Copy</Description><Scale>MB/s</Scale>"
    return f"<Result>{about}<Proportion>{way}</Proportion><Data>{data}</Data></Result>"


def test_phoronix_xml(tmp_path: Path) -> None:
    raw = "<RawString>10.5:11:12.5</RawString>"
    text = phoronix(
        phoronix_test(("6.1", "11.33", raw), ("6.2", "12", "")),
        phoronix_test(("6.1", "3", ""), name="local/own", way="LIB"),
        phoronix_test(("6.1", "PASS", ""), name="pts/check-1.0.0", way=""),
        phoronix_test(("6.2", "", '<JSON>{"error":"E: no disk"}</JSON>'), name="pts/fio-2.1.0"),
    )
    old, new = read(written(tmp_path, text, "composite.xml"))
    assert (old.name, new.name) == ("6.1", "6.2")
    assert boots(old) == {
        "pts/stream: Type: Copy": ((10.5, 11.0, 12.5),),
        "local/own: Type: Copy": ((3.0,),),
    }
    copy = old.series["pts/stream: Type: Copy"]
    assert (copy.unit, copy.better, old.series["local/own: Type: Copy"].better) == ("MB/s", "higher", "lower")
    assert "no measurement" in old.missing["pts/check: Type: Copy"]
    assert new.missing == {"pts/fio: Type: Copy": "E: no disk"}
    assert [s.name for s in read(str(tmp_path))] == ["6.1", "6.2"]  # the folder that the suite keeps


def test_phoronix_export(tmp_path: Path) -> None:
    entry = {"value": 11.3, "raw_values": [10.5, 11, 12.5], "test_run_times": [1, 1, 1]}
    test = {"identifier": "pts/ctx-clock-1.0.0", "scale": "Clocks", "proportion": "LIB"}
    document = {
        "title": "x",
        "systems": {"run": {}},
        "results": {"d66656": test | {"results": {"run": entry}}},
    }
    found = only(written(tmp_path, json.dumps(document)))
    assert (found.name, boots(found)) == ("run", {"pts/ctx-clock": ((10.5, 11.0, 12.5),)})
    failed = {"run": {"details": {"error": "The test run did not produce a result."}}}
    document["results"] = {"d66656": test | {"results": failed}}
    with pytest.raises(RequestError, match="measured nothing") as caught:
        read(written(tmp_path, json.dumps(document)))
    assert "did not produce a result" in caught.value.details


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (phoronix(phoronix_test(("6.1", "1", "")))[:-60], "the XML ends in the middle"),
        (phoronix(), "measured nothing"),
        (phoronix(phoronix_test(("6.1", "1,5", ""))), "a comma"),
        (phoronix(phoronix_test(("6.1", "nan", ""))), "no finite number"),
        (phoronix(*[phoronix_test(("6.1", "1", ""))] * 2), "is there twice"),
    ],
)
def test_phoronix_that_is_wrong(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=said):
        read(written(tmp_path, text, "composite.xml"))


def test_phoronix_names_and_reasons_that_are_missing(tmp_path: Path) -> None:
    export = {
        "systems": [],
        "results": [
            {"title": "Own test", "scale": "s", "proportion": "LIB", "results": {"run": {"value": 3}}},
            {"identifier": "1.2", "proportion": "LIB", "description": "x", "results": {"run": {"value": 4}}},
            {"identifier": "a-b", "proportion": "HIB", "results": {"run": None, "other": {"value": "5"}}},
            {"identifier": "never-1.0", "proportion": "HIB", "results": []},
        ],
    }
    run, other = read(written(tmp_path, json.dumps(export)))
    assert boots(run) == {"Own test": ((3.0,),), "1.2: x": ((4.0,),)}
    assert run.missing == {"a-b": "the test gave no result"}
    assert (other.name, boots(other)) == ("other", {"a-b": ((5.0,),)})
    failed = phoronix(phoronix_test(("6.1", "1", ""), ("6.3", "", ""), name=""), "<Result/>")
    (only_one,) = read(written(tmp_path, failed, "composite.xml"))
    assert only_one.notes == ("'6.3' in the same file is left out: no test of it gave a result",)
    assert only_one.name == "6.1"
