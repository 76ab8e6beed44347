"""Requests: the command line that asks for the same, and names of options. Identities: see test_settings."""

from __future__ import annotations

from bisector.schemas.request import Request, command_line, option_name
from tests.support import fake_bisection


def test_the_request_comes_back_as_a_command() -> None:
    request = {
        "repo": "/linux",
        "trust_repo": True,
        "good": "v1",
        "bad": "v2",
        "workload": "w",
        "param": {"threads": ["1", "2"]},
        "recipe": "r",
        "apply": ["/a.patch"],
        "with_fix": ["abc"],
        "testbeds": ["one"],
        "threshold": "2%",
        "max_hours": "",
        "build_ahead": 2,
        "first_parent": True,
        "scan": False,
        "skip": ["v1.5"],
        "monitors": ["perf-stat"],
        "paths": ["kernel/sched"],
    }
    assert " ".join(command_line(request)) == (
        "perfbisect start --good v1 --bad v2 --workload w --repo /linux --trust-repo --param threads=1 "
        "--param threads=2 --threshold 2% --recipe r --testbed one --skip v1.5 --first-parent "
        "--apply /a.patch --with-fix abc --build-ahead 2 --monitor perf-stat -- kernel/sched"
    )


def test_a_request_that_says_little_is_a_short_command() -> None:
    request = Request(good="v1", bad="v2", workload="w", repo="/r")
    assert " ".join(command_line(request.model_dump(mode="json"))) == (
        "perfbisect start --good v1 --bad v2 --workload w --repo /r --alpha 0.05 --recipe x86_64-guest"
    )


def test_a_search_for_a_fix_has_its_ends_by_age_and_comes_back_as_a_command() -> None:
    request = Request(good="v2", bad="v1", workload="w", repo="/r", find="fix")
    assert request.oldest_first(request.good, request.bad) == ("v1", "v2")
    assert "--good v2 --bad v1 --find fix" in " ".join(command_line(request.model_dump(mode="json")))


def test_a_command_comes_back_as_it_was_said() -> None:
    request = Request(good="v1", bad="v2", repo="/r", run="a | b", metric="rate", higher_is_better=True)
    words = command_line(request.model_dump(mode="json"))
    assert words[words.index("--run") + 1] == "a | b"
    assert "--higher-is-better" in words
    assert "--workload" not in words


def test_options_are_named_after_fields_unless_said_otherwise() -> None:
    assert [option_name(name) for name in ("max_hours", "testbeds", "monitors")] == [
        "--max-hours",
        "--testbed",
        "--monitor",
    ]


def test_a_unit_that_says_modelled_makes_no_other_request() -> None:
    one = fake_bisection.accepted(fake_bisection.a_lab())
    metric = {**one.goal["metric"], "unit": "misses"}
    earlier = one.model_copy(update={"goal": {**one.goal, "metric": metric}})
    metric = {**metric, "unit": "modelled misses"}
    assert one.model_copy(update={"goal": {**one.goal, "metric": metric}}).identity() == earlier.identity()
    assert one.identity() != earlier.identity()


def test_machines_that_are_added_to_the_lab_make_no_other_request_of_one_that_names_none() -> None:
    lab = fake_bisection.a_lab()
    one, two = (fake_bisection.accepted(lab, testbeds) for testbeds in (("a",), ("a", "b")))
    assert one.identity() != two.identity()
    chosen = [accepted.model_copy(update={"testbeds_chosen": True}) for accepted in (one, two)]
    assert {accepted.identity() for accepted in chosen} == {one.identity()}, "as before there were several"
