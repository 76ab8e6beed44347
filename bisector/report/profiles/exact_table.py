"""Two counted profiles side by side: what each function executes more or less, and what is left."""

from __future__ import annotations

from typing import Any

from bisector.linux.exact_profile import ExactChange, ExactComparison
from bisector.report import phrases
from bisector.report.columns import align


def render(found: ExactComparison, top: int) -> str:
    """Return the text. top: lines of the table."""
    return phrases.page([*table(found, top), "", *phrases.wrap(sentence(found, top), "")])


def table(found: ExactComparison, top: int) -> list[str]:
    """Return the functions that changed most, the rest of them, and the sum, as aligned lines."""
    changed = _changed(found, top)
    rows = [_row(found, ("*" if one.touched else "") + one.symbol.name, one.a, one.b) for one in changed]
    rest = found.changes[len(changed) :]
    if rest:
        label = f"{len(rest)} others"
        rows.append(_row(found, label, sum(one.a for one in rest), sum(one.b for one in rest)))
    rows.append(_row(found, "all", found.a.total, found.b.total))
    return align(("INSTRUCTIONS A RUN", found.a.name, found.b.name, "CHANGE", "OF ALL"), rows, right=True)


def sentence(found: ExactComparison, top: int) -> str:
    """Return what accounts for the effect, in words."""
    rest = found.rest(len(_changed(found, top)))
    text = (
        f"Of {found.effect:+,.0f} instructions a run ({_share(found.effect, found.a.total)}) the functions "
        f"above account for {found.effect - rest:+,.0f}; {rest:+,.0f} are left. Counted, not sampled."
    )
    if any(one.touched for one in found.changes):
        ours = sum(one.change for one in found.changes if one.touched)
        text += f" * marks functions that the commit changes: {ours:+,.0f}."
    return text


def _changed(found: ExactComparison, top: int) -> list[ExactChange]:
    return [one for one in found.changes[:top] if one.change]


def _row(found: ExactComparison, label: str, a: float, b: float) -> tuple[str, ...]:
    return label, f"{a:,.0f}", f"{b:,.0f}", f"{b - a:+,.0f}", _share(b - a, found.a.total)


def as_json(found: ExactComparison) -> dict[str, Any]:
    """Return the same for machines."""
    return {
        "unit": "instructions",
        "totals": [found.a.total, found.b.total],
        "functions": [
            {
                "name": one.symbol.name,
                "origin": one.symbol.origin,
                "counts": [one.a, one.b],
                "change": one.change,
                "touched": one.touched,
            }
            for one in found.changes
            if one.a or one.b
        ],
    }


def _share(change: float, total: float) -> str:
    return f"{100 * change / total:+.2f}%" if total else "-"
