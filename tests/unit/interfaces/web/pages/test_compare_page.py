"""What can be set side by side, and what the rows of a comparison hold."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from html import unescape

import httpx
import pytest

from bisector.app.wiring import Wiring
from bisector.model.decisions import Interval
from bisector.model.records import Booted
from tests.support.report_material import sixty_boots
from tests.support.servers import served_lab

ENDS = {"a": "done-1:v6.1", "b": "done-1:v6.2"}


def rows(client: httpx.Client, **asked: str) -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(client.get("/compare.csv", params=asked).text))]


def test_two_commits_have_a_row_for_each_testbed(client: httpx.Client) -> None:
    found = rows(client, **ENDS)
    assert [(row["testbed"], row["metric"], row["unit"]) for row in found] == [
        ("machine-a", "real", "s"),
        ("machine-b", "real", "s"),
    ]
    values = client.get("/compare.json", params=ENDS).json()
    for row, testbed in zip(found, values["testbeds"], strict=True):
        (compared,) = testbed["metrics"][0]["comparisons"]
        assert [float(row[key]) for key in ("low", "estimate", "high")] == [
            compared["effect"][key] for key in ("low", "estimate", "high")
        ]
        assert float(row["p"]) == compared["p"]
    text = client.get("/compare", params=ENDS).text
    assert re.search("<title>done-1:v6.1 -&gt; done-1:v6.2", text)


def test_blanks_around_a_place_are_no_part_of_it(client: httpx.Client) -> None:
    named = [
        one["id"] for one in client.get("/compare.json", params={"a": " done-1 ", "b": "paused-1"}).json()
    ]
    assert named == ["done-1", "paused-1"]


def test_two_bisections_are_set_side_by_side(client: httpx.Client) -> None:
    found = {row["what"]: (row["a"], row["b"]) for row in rows(client, a="done-1", b="paused-1")}
    assert found["id"] == ("done-1", "paused-1")
    assert found["status"] == ("done", "paused")
    assert found["testbeds"] == ("machine-b, machine-a", "machine-a, machine-b")
    assert found["result"] == ("Culprit proven", "No conclusion yet: paused.")
    assert "rework number 20" in found["found"][0] and "slower" in found["effect"][0]
    assert found["found"][1] == found["effect"][1] == ""
    ends = '000000000000 ("sched: rework number 0") and 000000000000 ("sched: rework number 33")'
    assert found["range"][0] == f"33 candidates between {ends}, judged by real"
    assert found["workload"] == ("sched: rework number w",) * 2
    assert found["metric"] == ("real in s, lower is better",) * 2
    assert found["boots"] == ("14, 2 min in all", "6, 54 s in all")
    text = client.get("/compare?a=done-1&b=paused-1").text
    heads = re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', text)
    assert heads == ["", "done-1", "paused-1"]
    table = text.partition("<tbody>")[2].partition("</tbody>")[0]
    shown = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.split("</tr>")[:-1]]
    assert [tuple(unescape(cell) for cell in row) for row in shown] == [
        (what, *(cell.removeprefix("'") for cell in cells)) for what, cells in found.items() if what != "id"
    ]


def test_the_form_keeps_what_was_compared(client: httpx.Client) -> None:
    for asked in (ENDS, {"a": "done-1", "b": "paused-1"}):
        fields = re.findall(r'name="([ab])" value="([^"]*)"', client.get("/compare", params=asked).text)
        assert dict(fields) == asked


def test_each_of_several_findings_is_named(client: httpx.Client, lab: Wiring) -> None:
    material = sixty_boots(boots=12)
    assert material.conclusion is not None
    (first,) = material.conclusion.findings
    second = replace(first, commits=(16, 17), effect=Interval(0.02, 0.03, 0.04))
    crowd = replace(first, commits=tuple(range(1, 33)), certified=False)
    small = replace(first, commits=(18,), small=True)
    conclusion = replace(material.conclusion, findings=(first, second, crowd, small))
    served_lab.store(lab, replace(material, conclusion=conclusion), "done", "{}", 60, name="several-1")
    found = {row["what"]: row["a"] for row in rows(client, a="several-1", b="done-1")}
    commits = [unnamed.partition('("')[2].rstrip('")') for unnamed in re.split("[;,] ", found["found"])]
    assert commits[:3] == [f"sched: rework number {number}" for number in (20, 16, 17)]
    assert found["found"].endswith("; a set") and found["found"].count("; ") == 2
    assert [one.strip("'")[:5] for one in found["effect"].split("; ")] == ["+6.1%", "+3.0%", "+6.1%"]


def test_a_commit_that_one_testbed_did_not_measure_has_no_difference_there(
    client: httpx.Client, lab: Wiring
) -> None:
    material = sixty_boots(boots=12)
    moved = [
        (n, replace(r, testbed="machine-c"))
        if isinstance(r, Booted) and (r.commit, r.testbed) == (24, "machine-a")
        else (n, r)
        for n, r in material.records
    ]
    served_lab.store(lab, replace(material, records=moved), "done", "{}", 61, name="moved-1")
    found = rows(client, a="moved-1:v6.1", b=f"moved-1:{material.graph.shas[24]}")
    seen = {row["testbed"]: [row[key] for key in ("low", "estimate", "high", "p")] for row in found}
    assert seen.keys() == {"machine-a", "machine-b", "machine-c"} and all(seen["machine-b"])
    assert seen["machine-a"] == seen["machine-c"] == [""] * 4


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ("done-1", "", "'' names neither a bisection nor a commit"),
        ("", "done-1", "'' names neither a bisection nor a commit"),
        ("done-1:v6.1", "paused-1", "a commit cannot be compared with a bisection"),
        ("done-1:v6.1", "done-1:v6.1", "both are the same commit"),
        ("done-1:v6.1 x", "paused-1", "names neither"),
        ("../x", "paused-1", "names neither"),
        ("done-1:", "paused-1", "names neither"),
        ("x" * 201, "paused-1", "names neither"),
        ("x" * 200, "paused-1", "there is no bisection"),
        (f"{'/' * 400}", "paused-1", f"'{'/' * 100}' names neither"),
        ("done-1", "x" * 501, "b: must have at most 500 characters"),
    ],
)
def test_what_cannot_be_compared_is_refused(client: httpx.Client, a: str, b: str, said: str) -> None:
    answer = client.get("/compare.json", params={"a": a, "b": b})
    assert answer.status_code in (400, 404) and said in answer.json()["detail"]


def test_one_commit_under_two_names_is_not_compared_with_itself(client: httpx.Client, lab: Wiring) -> None:
    graph = lab.store.load("done-1").graph
    for other in (f"done-1:{graph.shas[graph.good]}", "done:v6.1"):
        answer = client.get("/compare.json", params={"a": "done-1:v6.1", "b": other})
        assert answer.status_code == 400 and answer.json()["detail"] == "both are the same commit", other


def test_nothing_is_compared_before_something_is_named(client: httpx.Client) -> None:
    assert client.get("/compare.json").json() == {} and "Name two commits" in client.get("/compare").text
