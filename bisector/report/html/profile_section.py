"""Two profiles side by side: the symbols that changed, and the flame graph if call chains were recorded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from bisector.linux.profile import Profile, ProfileComparison, compare_profiles
from bisector.report.html import self_contained
from bisector.report.profiles import flame_graph, profile_table

MAX_SYMBOLS = 30
"""Symbols in the table: what `perfbisect profile` prints."""


@dataclass(frozen=True)
class TwoProfiles:
    """The profiles of two kernels. touched: functions that the commit in question changes."""

    a: Profile
    b: Profile
    touched: frozenset[str] = frozenset()


def context(profiles: TwoProfiles, top: int = MAX_SYMBOLS) -> dict[str, Any]:
    """Return what the template shows of two profiles."""
    found = compare_profiles(profiles.a, profiles.b, sorted(profiles.touched))
    return {
        "names": (found.a.name, found.b.name),
        "sentences": profile_table.sentences(found),
        "warnings": found.warnings,
        "head": _as_words(profile_table.changes_head(found)),
        "rows": profile_table.change_rows(found, top),
        "calls_head": _as_words(profile_table.calls_head(found)),
        "calls": profile_table.call_rows(found.calls, top),
        "flame": _flame(found, profiles),
    }


def _as_words(head: Iterable[str]) -> list[str]:
    """Return the head of a table as pages write it; names of profiles stay as they are."""
    return [cell.capitalize() if cell.isupper() else cell for cell in head]


def _flame(found: ProfileComparison, profiles: TwoProfiles) -> Markup | None:
    """Return the flame graph; None without call chains. `flame_graph` escapes every name itself."""
    if not (found.a.stacks and found.b.stacks):
        return None
    return Markup(flame_graph.render(found.a, found.b, profiles.touched, embedded=True))  # noqa: S704


def render(profiles: TwoProfiles, top: int = MAX_SYMBOLS) -> str:
    """Return a page of two profiles."""
    title = f"{profiles.a.name} -> {profiles.b.name}"
    return self_contained.render(
        "profile.html.j2", title=f"Profiles: {title}", profile=context(profiles, top)
    )
