"""Text of files within limits: what is no file, no text or too large is refused with file, line and cure."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bisector.errors import RequestError
from bisector.schemas.documents.document import (
    LARGEST_NUMBER,
    MAX_DEPTH,
    MAX_SETTINGS_BYTES,
    Key,
    check_values,
    exists,
    expand_user,
    is_file,
    read_document,
    shortened,
    shown,
    shown_path,
    why_no_file,
)


def refused(read: Callable[[], object]) -> str:
    with pytest.raises(RequestError) as caught:
        read()
    assert caught.value.cure, "every refusal has a cure"
    return caught.value.message


def fifo(path: Path) -> None:
    os.mkfifo(path)


NO_FILES: list[tuple[Callable[[Path], object], str]] = [
    (lambda path: None, "no such file"),
    (lambda path: path.mkdir(), "is a folder"),
    (fifo, "is not a regular file"),
    (lambda path: path.symlink_to("/dev/zero"), "is not a regular file"),
    (lambda path: path.symlink_to(path.name), "cannot be read: Too many levels of symbolic links"),
    (lambda path: path.symlink_to("gone"), "is a link to what is not there"),
]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        *NO_FILES,
        (lambda path: path.write_bytes(b"a\nb\xff"), ":2: not text in UTF-8: the byte 0xff"),
        (lambda path: path.write_bytes("ä".encode("utf-16")), ":1: not text in UTF-8"),
        (lambda path: path.write_bytes(b"\xef\xbb\xbfa"), ":1: begins with a byte order mark"),
        (lambda path: path.write_bytes(b"\n\n\0"), ":3: holds the control character U+0000"),
        (lambda path: path.write_bytes(b"a\x1b[2J"), ":1: holds the control character U+001B"),
        (lambda path: path.write_bytes("a\x9b".encode()), ":1: holds the control character U+009B"),
        (lambda path: path.write_bytes(b"a" * (MAX_SETTINGS_BYTES + 1)), "larger than 1 MiB"),
    ],
)
def test_what_is_no_text(tmp_path: Path, make: Callable[[Path], object], words: str) -> None:
    make(tmp_path / "file")
    message = refused(lambda: read_document(tmp_path / "file"))
    assert message.startswith(str(tmp_path / "file")) and words in message


def test_names_that_no_file_can_have(tmp_path: Path) -> None:
    assert "no file can have that name" in refused(lambda: read_document(tmp_path / "a\0b"))
    long = refused(lambda: read_document(tmp_path / ("x" * 10_000)))
    assert "File name too long" in long and len(long) < 600
    assert not is_file(tmp_path / ("x" * 10_000)) and not exists(tmp_path / ("x" * 10_000))
    assert refused(lambda: expand_user("~nobody-of-this-name/x"))
    assert expand_user("~/x") == Path.home() / "x"


def test_an_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", denied)  # tests run as root, who may read everything
    assert "cannot be read: Permission denied" in refused(lambda: read_document(tmp_path / "file"))


@pytest.mark.parametrize(
    ("make", "words"),
    NO_FILES,
)
def test_only_what_is_not_there_is_called_so(
    tmp_path: Path, make: Callable[[Path], object], words: str
) -> None:
    make(tmp_path / "file")
    assert why_no_file(tmp_path / "file") == words


def test_why_a_file_is_not_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    assert why_no_file(tmp_path / "file" / "x") == "no such file"
    assert why_no_file(tmp_path / "a\0b") == "cannot be read: no file can have that name"

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", denied)
    assert why_no_file(tmp_path / "file") == "cannot be read: Permission denied"


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"a": [1.0, float("nan")]}, "at a.1: key 'a.1': nan is no finite number"),
        ({"a": float("-inf")}, "at a: key 'a': -inf is no finite number"),
        (2 * LARGEST_NUMBER, "at : 2e+100 is too large"),
        ([10**101], "a number of more than 100 digits is too large"),
        ([1 << 100_000], "a number of more than 100 digits is too large"),
        ({"a": "x\0"}, "at a: key 'a': text with a NUL"),
        ({"\ud800": 1}, "text with a NUL character or half a character"),
        (nested(MAX_DEPTH + 1), "more than 100 lists or mappings"),
    ],
)
def test_values_that_no_document_may_have(value: object, words: str) -> None:
    def place(key: Key) -> str:
        return f"at {'.'.join(key)}"

    assert words in refused(lambda: check_values(value, place))


def test_values_within_the_limits() -> None:
    check_values(
        {"a": [1, 2.5, -LARGEST_NUMBER, True, None, "ä"], "b": nested(MAX_DEPTH - 1)}, lambda key: ""
    )


def test_what_messages_repeat_is_short_and_printable() -> None:
    assert shown("a\x1b[0m") == r"'a\x1b[0m'"
    assert len(shown("x" * 10**6)) < 100
    assert shortened("a\nb\u202e\ud800") == r"a\nb\u202e\ud800"
    assert shown_path(Path(os.fsdecode(b"/a\xff/b"))) == r"/a\udcff/b"
    assert len(shown_path(Path("/" + "x" * 10_000))) < 500


def test_a_value_is_shown_as_its_file_writes_it() -> None:
    when = datetime.datetime(1979, 5, 27, 7, 32, tzinfo=datetime.UTC)
    assert shown(when) == "1979-05-27T07:32:00+00:00"
    assert shown(when.date()) == "1979-05-27" and shown(when.time()) == "07:32:00"
    assert shown(Path("a/b")) == shown("a/b") == "'a/b'"
