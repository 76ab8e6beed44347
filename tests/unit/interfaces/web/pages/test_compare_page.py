"""What can be set side by side, and what the rows of a comparison hold."""

from __future__ import annotations

import csv
import io
import re

import httpx
import pytest

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
    text = client.get("/compare?a=done-1&b=paused-1").text
    heads = re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', text)
    assert heads == ["", "done-1", "paused-1"]


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
        ("done-1", "x" * 501, "b: must have at most 500 characters"),
    ],
)
def test_what_cannot_be_compared_is_refused(client: httpx.Client, a: str, b: str, said: str) -> None:
    answer = client.get("/compare.json", params={"a": a, "b": b})
    assert answer.status_code == 400 and said in answer.json()["detail"]


def test_nothing_is_compared_before_something_is_named(client: httpx.Client) -> None:
    assert client.get("/compare.json").json() == {} and "Name two commits" in client.get("/compare").text
