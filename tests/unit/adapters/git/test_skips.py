"""What `--skip` may say."""

from __future__ import annotations

import pytest

from bisector.adapters.git.skips import parse_skip, refuse_skipped_ends
from bisector.errors import RequestError


@pytest.mark.parametrize(("text", "names"), [("v6.1", ("", "v6.1")), ("v6.1..v6.2", ("v6.1", "v6.2"))])
def test_one_commit_and_a_range(text: str, names: tuple[str, str]) -> None:
    assert parse_skip(text) == names


def test_an_end_that_is_skipped_is_named() -> None:
    refuse_skipped_ends({"c" * 40}, {"good": "a" * 40, "bad": "b" * 40}, "commit")
    with pytest.raises(RequestError, match="covers the new end") as caught:
        refuse_skipped_ends({"b" * 40}, {"old": "a" * 40, "new": "b" * 40}, "kernel")
    assert (caught.value.details, caught.value.cure) == (
        "b" * 12,
        "skip less, or choose another kernel for --new",
    )
