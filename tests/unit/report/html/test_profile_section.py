"""The page of two profiles: symbols, and a flame graph only where there are call chains."""

from __future__ import annotations

from bisector.linux.profile import Profile, Symbol
from bisector.report.html.profile_section import TwoProfiles, render
from tests.support.report_material import HOSTILE

SYMBOL = Symbol(HOSTILE)


def profile(name: str, weight: float, *, stacks: bool) -> Profile:
    return Profile(name, own={SYMBOL: weight}, stacks={(SYMBOL,): weight} if stacks else {})


def test_symbols_are_listed_and_hostile_names_stay_text() -> None:
    page = render(TwoProfiles(profile("a", 10.0, stacks=True), profile("b", 20.0, stacks=True)))
    assert page.count("<svg") == 1 and "<script" not in page and "<img" not in page
    assert "+10.00" in page


def test_without_call_chains_there_is_no_flame_graph() -> None:
    page = render(TwoProfiles(profile("a", 10.0, stacks=False), profile("b", 20.0, stacks=True)))
    assert "<svg" not in page and "+10.00" in page
