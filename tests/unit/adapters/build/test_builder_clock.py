"""Builders whose clock is wrong; `tests/integration/builds/test_builder_clocks.py` has how they notice."""

from __future__ import annotations

import pytest

from bisector.adapters.build.builder_clock import require_clock
from bisector.errors import BuilderUnwell


@pytest.mark.parametrize(("ahead", "said"), [("5000", "5000 s ahead of"), ("-130", "130 s behind")])
def test_a_builder_whose_clock_is_wrong_is_unwell(ahead: str, said: str) -> None:
    with pytest.raises(BuilderUnwell, match=f"the clock of the builder 'big' is {said} ours") as error:
        require_clock("big", {"status": "wrong-clock", "ahead": ahead})
    assert "NTP" in error.value.cure


@pytest.mark.parametrize("status", ["ok", "failed"])
def test_any_other_answer_is_of_a_clock_that_is_right(status: str) -> None:
    require_clock("big", {"status": status})
