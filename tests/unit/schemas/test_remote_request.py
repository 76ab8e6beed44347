"""Requests from elsewhere: whatever is sent becomes a request of listed things, or is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from bisector.errors import RequestError
from bisector.schemas.remote_request import RemoteRequest, remote_request
from bisector.schemas.request import Request
from bisector.schemas.web_settings import WebSettings

WEB = WebSettings(repositories={"linux": Path("/srv/linux")}, testbeds=("box1", "box2"))
PLAIN: dict[str, Any] = {"good": "v6.1", "bad": "v6.2", "workload": "pipe-test"}
HOSTILE = st.sampled_from(
    [
        "-x",
        "--upload-pack=sh",
        "../../etc",
        "/etc/passwd",
        "a;b",
        "$(id)",
        "`id`",
        "a b",
        "a\nb",
        "a\x00b",
        "a..b",
        "HEAD:x",
        "HEAD@{1}",
        "^a",
        "a\u202eb",
        "x" * 1000,
        ":(top)",
        "~root",
        "{}",
        "a|b",
        "a'b",
        '"',
    ]
)
VALUES = st.one_of(HOSTILE, st.text(max_size=30), st.integers(), st.none(), st.booleans(), st.floats())
FIELDS = sorted(RemoteRequest.model_fields)


def resolved(**said: Any) -> dict[str, Any]:
    asked = RemoteRequest.model_validate({**PLAIN, **said})
    return asked.resolve(WEB, ["pipe-test"], ["box1", "box2", "box3"])


def words(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [w for k, v in value.items() for w in (k, *words(v))]
    if isinstance(value, list | tuple):
        return [w for one in value for w in words(one)]
    return [value] if isinstance(value, str) else []


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(FIELDS),
        st.one_of(
            VALUES, st.lists(VALUES, max_size=3), st.dictionaries(st.text(max_size=9), VALUES, max_size=2)
        ),
        max_size=6,
    )
)
def test_whatever_is_sent_names_listed_things_or_is_refused(said: dict[str, Any]) -> None:
    try:
        values = resolved(**said)
    except (ValidationError, RequestError):
        return
    assert values.pop("repo") == "/srv/linux"
    assert values.pop("workload") == "pipe-test"
    assert set(values["testbeds"]) <= {"box1", "box2"}
    for word in words(values):
        assert re.fullmatch(r"[A-Za-z0-9_.][^\x00-\x1f\x7f;|&$`'\"<>(){}\\*?\[\]!#]*", word), word
        assert not re.search(r"(^|/)\.\.(/|$)", word), word


@pytest.mark.parametrize("field", ["run", "apply", "trust_repo", "lab", "higher_is_better", "repos", "owner"])
def test_there_is_no_field_for_what_could_be_executed(field: str) -> None:
    assert field not in RemoteRequest.model_fields
    with pytest.raises(ValidationError):
        resolved(**{field: "sh"})


def test_what_is_not_said_is_the_servers_choice() -> None:
    assert resolved()["repo"] == "/srv/linux" and resolved()["testbeds"] == ("box1",)
    two = WebSettings(repositories={"a": Path("/a"), "b": Path("/b")})
    with pytest.raises(RequestError, match="no repository is named"):
        RemoteRequest.model_validate(PLAIN).resolve(two, ["pipe-test"], [])
    with pytest.raises(RequestError, match="lists no workload 'pipe-test'"):
        own = WebSettings(repositories={"a": Path("/a")}, workloads=("/srv/mine",))
        RemoteRequest.model_validate(PLAIN).resolve(own, ["pipe-test"], [])


def test_a_shipped_variant_is_named_with_its_workload() -> None:
    asked = RemoteRequest.model_validate({**PLAIN, "workload": "hackbench/small"})
    shipped = ["hackbench", "hackbench/small", "pipe-test/small"]
    for listed in ((), ("hackbench/small", "pipe-test/small")):
        own = WebSettings(repositories={"a": Path("/a")}, workloads=listed)
        assert asked.resolve(own, shipped, [])["workload"] == "hackbench/small"
    for name in ("a/../b", "/hackbench", "hackbench/", "a/b/c", "../small", "hackbench//small", "a/.b"):
        with pytest.raises(ValidationError):
            RemoteRequest.model_validate({**PLAIN, "workload": name})


def test_a_listed_workload_is_named_by_its_folder() -> None:
    own = WebSettings(repositories={"a": Path("/a")}, workloads=("/srv/mine",))
    asked = RemoteRequest.model_validate({**PLAIN, "workload": "mine"})
    assert asked.resolve(own, [], [])["workload"] == "/srv/mine"


def test_everything_else_of_a_command_line_arrives() -> None:
    said = {
        "find": "fix", "param": {"n": ("1", "2")}, "metric": "real", "threshold": "0.1 s", "alpha": 0.01,
        "recipe": "x86_64-guest", "testbeds": ("box2",), "skip": ("a..b", "v6.2-rc1"), "first_parent": True,
        "with_fix": ("abc:v6.1~3",), "max_hours": 2.0, "max_builds": 3, "max_runs": 4, "scan": True,
        "build_ahead": 2, "monitors": ("perf-stat=cycles,sched:sched_switch",), "paths": ("kernel/sched",),
    }  # fmt: skip
    request = Request.model_validate({**PLAIN, **said, "repo": "linux"})
    sent = RemoteRequest.model_validate(remote_request(request))
    back = sent.resolve(WEB, ["pipe-test"], [])
    assert Request.model_validate(back) == request.model_copy(update={"repo": "/srv/linux"})
    not_said = {"repo", "good", "bad", "workload", "priority", "notify"} | said.keys()
    assert not_said == set(RemoteRequest.model_fields), "each field is sent above"


@pytest.mark.parametrize(
    "url",
    [
        "http://hook.example/x",
        "http://127.0.0.1:8080/x",
        "https://127.0.0.1/x",
        "https://127.8.9.1:8443/",
        "https://localhost/x",
        "https://LOCALHOST./x",
        "https://a.localhost/x",
        "https://[::1]/x",
        "https://[::ffff:127.0.0.1]/x",
        "https://[fe80::1]/x",
        "https://169.254.169.254/latest",
        "https://0.0.0.0/",
        "https://me:pw@hook.example/",
        "https:///x",
        "file:///etc/passwd",
    ],
)
def test_a_webhook_from_elsewhere_is_on_another_machine(url: str) -> None:
    """What listens on loopback takes everybody on the server for its friend."""
    with pytest.raises(ValidationError, match=r"must be https://HOST/PATH"):
        RemoteRequest.model_validate({**PLAIN, "notify": [f"webhook:{url}"]})


@pytest.mark.parametrize(
    "url", ["https://hook.example/x?room=1", "https://93.184.215.14:8443/", "https://10.0.0.9/x"]
)
def test_a_webhook_elsewhere_is_taken(url: str) -> None:
    """Whether a private address is asked is for the settings, when it is sent."""
    assert RemoteRequest.model_validate({**PLAIN, "notify": [f"webhook:{url}"]}).notify == (f"webhook:{url}",)
