"""`perfbisect series list` and `show`: what nights have shown."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from bisector.interfaces.cli import ask, options, output
from bisector.interfaces.cli.arguments import completion
from bisector.model.format import count

_NIGHTS_SHOWN = 30
"""Nights that `show` lists: a month."""

Name = Annotated[str, typer.Argument(metavar="NAME", help="Of a series.", autocompletion=completion.series)]


def list_(as_json: options.Json = False) -> None:
    """List the series with their state, what their last night showed, and when the next is due.

    Examples:

      perfbisect series list

      perfbisect series list --json
    """
    from bisector.report import phrases

    rows = ask.operations().series_list()
    if as_json:
        output.print_json(rows)
        return
    if not rows:
        print("No series yet.")
        return
    header = ("NAME", "STATE", "BRANCH", "WORKLOAD", "TESTBED", "NIGHTS", "LAST", "HOURS", "NEXT")
    cells = [
        (
            row["name"],
            row["state"],
            row["branch"],
            row["workload"],
            row["testbed"],
            str(row["nights"]),
            row["verdict"] or row["last_state"] or "",
            f"{row['hours_used']:.1f} of {row['hours_allowed']:g}",
            phrases.date(row["next"]) if row["next"] is not None else _why_not(row),
        )
        for row in rows
    ]
    print(output.table(header, cells, wrapped=["NEXT"], dropped=["HOURS", "TESTBED", "BRANCH", "WORKLOAD"]))


def show(
    name: Name,
    everything: Annotated[bool, typer.Option("--all", help="All nights.")] = False,
    as_json: options.Json = False,
) -> None:
    """Show a series: its levels as a picture, and its nights with what they showed.

    Examples:

      perfbisect series show pipe

      perfbisect series show pipe --all
    """
    from bisector.report import phrases, pictures

    found = ask.operations().series(name)
    if as_json:
        output.print_json(found)
        return
    nights = found["nights"]
    levels = [night["level"] for night in nights if night["level"] is not None]
    reference = max(map(abs, levels), default=0.0)  # one number of places
    rows = {
        "series": f"{found['name']}, {found['state']}{': ' + found['why'] if found['why'] else ''}",
        "branch": f"{found['branch']} of {found['repo']}",
        "measured": f"{found['workload']} on {found['testbed']}, {count(found['boots'], 'boot')} a night, "
        f"reference {found['reference'][:12]}",
        "waits": _why_nights_wait(found),
        "budget": f"{found['hours_used']:.1f} of {hours_words(found)}",
        "due": f"'{found['cron']}' in {found['time_zone']}",
        "next": due_words(found["next"], found["time_zone"]) if found["next"] is not None else "",
        "levels": "nothing was measured yet",
    }
    if levels:
        low, high = (phrases.number(one, reference) for one in (min(levels), max(levels)))
        rows["levels"] = f"{pictures.sparkline(levels)}  {low} .. {high} {found['unit'] or ''}".rstrip()
    text = output.pairs({key: value for key, value in rows.items() if value})
    print("\n".join(pictures.in_characters_of(sys.stdout.encoding, text.splitlines())))
    shown = nights if everything else nights[-_NIGHTS_SHOWN:]
    if shown:
        level = f"LEVEL ({found['unit']})" if found["unit"] else "LEVEL"
        header = ("NIGHT", "DUE", "COMMIT", "STATE", level, "WHAT IT SHOWED")
        print(
            "\n"
            + output.table(
                header,
                [_cells(night, found["effect_unit"], reference) for night in shown],
                wrapped=[header[-1]],
            )
        )
    if len(shown) < len(nights):
        output.print_note(f"the latest {len(shown)}; 'perfbisect series show {name} --all' shows all")


def hours_words(series: dict[str, Any]) -> str:
    """Return what a series may have, and whether that is its own budget."""
    allowed, budget = series["hours_allowed"], series["budget"]
    capped = "" if allowed == budget else f": a cap of the lab, below the budget of {budget:g}"
    return f"{allowed:g} machine hours in seven days{capped}"


def due_words(seconds: float, time_zone: str) -> str:
    """Return when a night is due: in UTC, and in the zone of its series where that is another one."""
    from bisector.report import phrases

    utc = phrases.date(seconds)
    try:
        there = datetime.fromtimestamp(seconds, ZoneInfo(time_zone))
    except (ZoneInfoNotFoundError, ValueError, OSError):  # of a server's series; not known here
        return utc
    return utc if time_zone == "UTC" else f"{utc}, {there:%Y-%m-%d %H:%M} {time_zone}"


def _why_not(series: dict[str, Any]) -> str:
    """Return why no night is due."""
    return ": ".join(filter(None, (series["state"], series["why"]))) if series["state"] != "active" else ""


def _why_nights_wait(series: dict[str, Any]) -> str:
    """Return why no night is measured now that is due; an earlier server does not report it."""
    reason = series.get("testbed_out_of_use")
    return f"the testbed '{series['testbed']}' is not used: {reason}" if reason else ""


def _cells(night: dict[str, Any], unit: str, reference: float) -> tuple[str, ...]:
    from bisector.report import phrases
    from bisector.report.row_words.night_words import night_words

    return (
        str(night["number"]),
        phrases.date(night["scheduled"]),
        night["commit"][:12],
        night["state"] if night["kind"] == "night" else f"{night['state']}, {night['kind']}",
        "" if night["level"] is None else phrases.number(night["level"], reference),
        night_words(night, unit),
    )
