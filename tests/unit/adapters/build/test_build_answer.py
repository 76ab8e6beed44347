"""Answers of builds, in which the commit's own programs had a hand: what cannot be is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bisector.adapters.build import build_answer
from bisector.adapters.build.build_answer import check_answer
from bisector.errors import InfrastructureError

OK = {"status": "ok", "release": "6.1.0-toy", "build_id": "0a" * 20, "binary": "b" * 64, "text": "123"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("image", "config", "build.log"):
        (tmp_path / name).write_text("x\n")
    return tmp_path


def test_what_a_builder_says_of_a_kernel_is_taken_and_nothing_else(folder: Path) -> None:
    times = {"seconds": ".53", "cpu_seconds": "1.25e+03", "hits": "0", "packed": "unknown", "build_id": ""}
    assert check_answer({**OK, **times, "sha": "its own idea"}, folder, "abc") == OK | times


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", "perfect"),
        ("release", "6.1 \x1b[31m"),
        ("release", "x" * 65),
        ("release", "6.1{{lookup('pipe','id')}}"),
        ("release", "$(id)"),
        ("release", "6.1/../../../etc"),
        ("release", ".."),
        ("release", "-rf"),
        ("build_id", "../../etc"),
        ("binary", "b" * 63),
        ("text", "-1"),
        ("hits", "9" * 5000),
        ("free_kb", "nan"),
        ("seconds", "1e999"),
        ("cpu_seconds", "inf"),
        ("compiled", "1 2"),
    ],
)
def test_a_fact_that_cannot_be_is_nobodys(folder: Path, name: str, value: str) -> None:
    with pytest.raises(InfrastructureError, match=f"an answer that cannot be: {name}") as error:
        check_answer({**OK, name: value}, folder, "abc")
    assert "skip" in error.value.cure


@pytest.mark.parametrize(
    "release",
    ["2.6.18", "6.1.0-53-cloud-amd64", "5.15.0-rt17+", "6.9.1-1.x86_64", "4.19.0_own~rc1:a@b", "x" * 64],
)
def test_a_release_that_a_kernel_may_have_is_taken(folder: Path, release: str) -> None:
    assert check_answer({**OK, "release": release}, folder, "abc")["release"] == release


@pytest.mark.parametrize("name", ["status", "release", "build_id", "binary"])
def test_a_fact_that_is_missing_is_nobodys(folder: Path, name: str) -> None:
    with pytest.raises(InfrastructureError, match=f"an answer that cannot be: {name}"):
        check_answer({key: value for key, value in OK.items() if key != name}, folder, "abc")


@pytest.mark.parametrize("name", ["image", "config", "build.log"])
def test_a_file_that_is_missing_is_nobodys(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(InfrastructureError, match=f"an answer that cannot be: {name}"):
        check_answer(OK, folder, "abc")


def test_a_failed_build_has_a_log_and_needs_no_more(folder: Path) -> None:
    (folder / "image").unlink()
    assert check_answer({"status": "failed"}, folder, "abc") == {"status": "failed"}


def test_a_configuration_too_large_for_one_is_refused_and_a_log_keeps_its_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_answer, "_LOG_BYTES_MAX", 10)
    (folder / "build.log").write_text("line\n" * 100 + "error: here")
    check_answer(OK, folder, "abc")
    assert (folder / "build.log").read_text() == "rror: here"
    monkeypatch.setattr(build_answer, "_CONFIG_BYTES_MAX", 1)
    with pytest.raises(InfrastructureError, match="cannot be: config"):
        check_answer(OK, folder, "abc")


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    facts=st.dictionaries(
        st.sampled_from(sorted(build_answer._FORMS)), st.text(max_size=30) | st.text("0123456789abcdef.e+-")
    )
)
def test_any_facts_are_taken_or_refused_and_what_is_taken_are_numbers(
    folder: Path, facts: dict[str, str]
) -> None:
    try:
        known = check_answer(facts, folder, "abc")
    except InfrastructureError:
        return
    for name in ("hits", "misses", "compiled", "free_kb", "text", "data", "bss", "image"):
        assert int(known.get(name, "0")) >= 0
    for name in ("seconds", "cpu_seconds"):
        assert float(known.get(name) or 0) < float("inf")
