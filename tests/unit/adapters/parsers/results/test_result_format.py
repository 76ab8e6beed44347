"""Every form is recognised by what is in it, and what is wrong with a file is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.parsers.results import read
from bisector.errors import RequestError
from tests.support.result_samples import written


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is nothing in it"),
        ("# only a comment\n", "there is no number in it"),
        ("1\ntwo\n", ":2: 'two' is not a number"),
        ("1,5\n", "a comma, which is a decimal point in some locales"),
        ("5,328\n", "a comma, which is a decimal point in some locales"),
        ("1\nnan\n", "is no finite number"),
        ("1\ninf\n", "is no finite number"),
        ("1\n\n-1e101\n", ":3: '-1e101' is too large"),
        ("real: 1\nreal: 1e101\n", ":2: '1e101' is too large"),
        ("real: 1 s\nsys: 1e101 s\n", ":2: '1e101' is too large"),
        ('{"real": [1, 2', "it ends in the middle"),
        ('{"real": [1 2]}', "not valid JSON"),
        ('{"real": [1, "2"]}', "a number was expected"),
        ('{"real": [true]}', "a number was expected"),
        ('{"real": []}', "has no value"),
        ("{}", "there is nothing in it"),
        ('{"metrics": {"a": {"values": [1], "units": "s"}}}', "unknown key 'units'"),
        ('{"metrics": {"a": {"values": [1], "better": "less"}}}', "'better' is 'less'"),
        ('{"metrics": {"a": {"runs": 3}}}', "neither 'values' nor a 'mean'"),
        ('{"a": [1]}\n{"a": [2]}', "2 JSON documents"),
        ("real: 5.3 s\nreal: 5300 ms\n", "is in 'ms' here and in 's' above"),
        ('{"fio version": "3", "jobs": []}', "no jobs"),
        ("\n Performance counter stats for 'x':\n\n <not supported> cycles\n", "perf stat counted nothing"),
        ("user 1.0\nsys 2.0\n", "has no 'real' line"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError) as caught:
        read(written(tmp_path, text))
    assert said in caught.value.message
    assert str(tmp_path) in caught.value.message


def test_what_is_no_text_or_no_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "x.gz").write_bytes(b"\x1f\x8bno")
    (tmp_path / "folder").mkdir()
    for name, said in (
        ("x", "not text"),
        ("x.gz", "cannot be read"),
        ("folder", "no results that are known"),
    ):
        with pytest.raises(RequestError, match=said):
            read(str(tmp_path / name))
    with pytest.raises(RequestError, match="no such file"):
        read(str(tmp_path / "absent"))
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(RequestError, match="cannot be read: Too many levels"):
        read(str(tmp_path / "loop"))


@pytest.mark.parametrize(
    "text",
    [
        '{"LONG": [1]}',
        '{"metrics": {"LONG": [1]}}',
        '{"name": "LONG", "metrics": {"a": [1]}}',
        '{"testbed": "LONG", "metrics": {"a": [1]}}',
        '{"metrics": {"a": {"values": [1], "unit": "LONG"}}}',
        '{"metrics": {"a": [1]}, "missing": {"LONG": "b"}}',
        '{"metrics": {"a": [1]}, "missing": {"b": "LONG"}}',
        '{"metrics": {"a": [1]}, "sizes": {"LONG": 1}}',
        "LONG: 1\n",
    ],
)
def test_a_name_that_would_fill_every_line_is_refused(text: str, tmp_path: Path) -> None:
    read(written(tmp_path, text.replace("LONG", "x" * 500), "a"))
    with pytest.raises(RequestError) as caught:
        read(written(tmp_path, text.replace("LONG", "x" * 501), "a"))
    assert f"{tmp_path / 'a'}: a name of 501 characters: 'xxx" in caught.value.message
    assert len(caught.value.message) < 200 + len(str(tmp_path))
