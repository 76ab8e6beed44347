"""The token for a server: where it is read from, and that nobody else can read it there."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.system.bearer_token import read_token
from bisector.errors import RequestError


def test_the_variable_is_stronger_than_the_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("of-the-file\n")
    file.chmod(0o600)
    assert read_token(file, {}) == "of-the-file"
    assert read_token(file, {"PERFBISECT_TOKEN": "of-the-variable"}) == "of-the-variable"


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        ("secret", 0o644, "others can read it"),
        ("secret", 0o640, "others can read it"),
        ("", 0o600, "there is no token for it"),
        ("two words", 0o600, "that is no token"),
        ("s\u00e9cret", 0o600, "that is no token"),
        ("secret\nsecret", 0o600, "that is no token"),
        (None, 0o600, "No such file"),
    ],
)
def test_what_is_no_token_is_refused_and_not_repeated(
    tmp_path: Path, content: str | None, mode: int, words: str
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)
        file.chmod(mode)
    with pytest.raises(RequestError, match=words) as error:
        read_token(file, {})
    assert "secret" not in str(error.value) + error.value.cure


def test_without_either_the_cure_says_how_to_get_one() -> None:
    with pytest.raises(RequestError) as error:
        read_token(None, {})
    assert "perfbisect token add NAME --role worker" in error.value.cure
