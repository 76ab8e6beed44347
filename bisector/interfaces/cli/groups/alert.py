"""`perfbisect alert`: the alerts of nightly series, and what people say of them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Annotated

import typer

from bisector.errors import RequestError, nearest
from bisector.interfaces.cli import ask, options, output
from bisector.interfaces.cli.arguments import completion, number_options
from bisector.model.alerts import AlertFilter, Triage
from bisector.report import phrases
from bisector.report.row_words.alert_words import (
    change_words,
    culprit_lines,
    end_names,
    range_words,
    result_words,
    size_words,
)

Id = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="An alert's id, or the beginning of one.", autocompletion=completion.alerts
    ),
]


def list_(
    series: Annotated[
        str, typer.Option(metavar="NAME", help="Only those of this series.", show_default=False)
    ] = "",
    states: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            metavar="STATE",
            help="Only those in this state; repeatable.",
            autocompletion=completion.alert_states,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Closed ones, too.")] = False,
    limit: number_options.Limit = None,
    after: Annotated[
        str,
        typer.Option(
            metavar="ID",
            help="Go on after this one, the last of another page.",
            show_default=False,
            autocompletion=completion.alerts,
        ),
    ] = "",
    as_json: options.Json = False,
) -> None:
    """List the open alerts, the latest first.

    Examples:

      perfbisect alert list

      perfbisect alert list --state culprit --state 'not found'

      perfbisect alert list --series nightly --all
    """
    from bisector.app.alerts.alert_changes import read_states

    wanted = AlertFilter(
        series=series, states=read_states(states or ()), open=None if everything or states else True
    )
    most = limit or (None if as_json else number_options.DEFAULT_LIMIT)
    operations = ask.operations()
    found = operations.alerts(wanted, after=after, limit=most)
    rows = found["alerts"]
    if as_json:
        output.print_json(rows)
        return
    if not rows:
        if series:
            _require_series(series)
        print("No alerts." if wanted.open is None else "No open alerts.")
        return
    header = ("ID", "STATE", "CHANGE", "SERIES", "FOUND", "ASSIGNEE", "RESULT")
    cells = [
        (
            row["id"],
            row["state"],
            change_words(row),
            row["series"],
            phrases.date(row["created"]),
            row["assignee"],
            result_words(row),
        )
        for row in rows
    ]
    print(output.table(header, cells, wrapped=["RESULT", "SERIES"], dropped=["FOUND", "ASSIGNEE"]))
    last = rows[-1]["id"]
    if len(rows) == most and operations.alerts(wanted, after=last, limit=1)["alerts"]:
        command = _going_on(last, series, states or (), limit, everything=everything)
        output.print_note(f"{len(rows):,} of {found['count']:,}; this goes on: {command}")


def _going_on(
    last: str, series: str | None, states: Sequence[str], limit: int | None, *, everything: bool
) -> str:
    """Return the command that lists what follows an alert, of the same choice."""
    chosen = [*(["--series", series] if series else []), *(["--all"] if everything else [])]
    chosen += [word for state in states for word in ("--state", state)]
    chosen += ["--limit", str(limit)] if limit else []
    return shlex.join(["perfbisect", "alert", "list", *chosen, "--after", last])


def _require_series(name: str) -> None:
    """Raise RequestError for an unknown series; alerts outlive their series."""
    operations = ask.operations()
    if operations.alerts(AlertFilter(series=name), after="", limit=1)["count"]:
        return
    known = [row["name"] for row in operations.series_list()]
    if name not in known:
        raise RequestError(
            f"there is neither a series '{name}' nor an alert of it{nearest(name, known)}",
            cure="'perfbisect series list' shows the series",
        )


def show(identity: Id, as_json: options.Json = False) -> None:
    """Show an alert: its range, its change, its bisection, and all that happened to it.

    Examples:

      perfbisect alert show 3f2a

      perfbisect alert show 3f2a --json
    """
    found = ask.operations().alert(identity)
    if as_json:
        output.print_json(found)
        return
    low, high = (size_words(found, found["effect"][limit]) for limit in ("low", "high"))
    before, after = end_names(found)
    subjects = found.get("subjects", {})  # a server of before does not tell them

    def named(key: str) -> str:
        return f"{found[key]}\n{subjects[key]}" if subjects.get(key) else str(found[key])

    rows = {
        "alert": f"{found['id']}, {found['state']}",
        "series": found["series"],
        "measured": f"{found['workload']} ({found['metric']}) on {found['testbed']}",
        "change": f"{change_words(found)} (95% interval {low} .. {high})",
        before: named("last_good"),
        after: named("first_bad"),
        "range": range_words(found),
        "tip": named("tip"),
        "finding": ": ".join(filter(None, (found["finding"], found["why"]))),
        "bisection": found["bisection"],
        "culprits": "\n".join(culprit_lines(found)),
        "back since": found["back_since"] and f"{found['back_since']} at the latest",
        "duplicate of": found["duplicate_of"],
        "same cause": ", ".join(found["same_cause"]),
        "assigned to": found["assignee"],
    }
    print(output.pairs({name: text for name, text in rows.items() if text}))
    print()
    cells = [(phrases.date(one["at"]), one["who"], one["what"], one["why"]) for one in found["history"]]
    print(output.table(("WHEN", "WHO", "WHAT", "WHY"), cells, wrapped=["WHAT", "WHY"], dropped=["WHO"]))


def set_(
    identity: Id,
    state: Annotated[
        Triage | None, typer.Option(help="What you say it is; 'acknowledged' opens it again.")
    ] = None,
    assignee: Annotated[
        str | None, typer.Option("--assign", metavar="NAME", help="Who looks after it.")
    ] = None,
    unassign: Annotated[bool, typer.Option("--unassign", help="Nobody looks after it.")] = False,
    note: Annotated[str, typer.Option(help="Why, or what others should know.", show_default=False)] = "",
    duplicate_of: Annotated[
        str,
        typer.Option(
            metavar="ID",
            help="It has the cause of this alert.",
            show_default=False,
            autocompletion=completion.alerts,
        ),
    ] = "",
    as_json: options.Json = False,
) -> None:
    """Say what an alert is, who looks after it, or write a note.

    Examples:

      perfbisect alert set 3f2a --state acknowledged --assign ann

      perfbisect alert set 3f2a --state invalid --note 'the disk was full'

      perfbisect alert set 3f2a --duplicate-of 81c0
    """
    from bisector.app.alerts.alert_changes import AlertChange

    if assignee is not None and unassign:
        raise RequestError("--assign and --unassign exclude each other", cure="give one of them")
    change = AlertChange(state, "" if unassign else assignee, note, duplicate_of)
    made = ask.operations().set_alert(identity, change)
    if as_json:
        output.print_json(made)
        return
    whose = f", assigned to {made['assignee']}" if made["assignee"] else ""
    output.print_note(f"{made['id']} is {made['state']}{whose}")
    if made["finding"] == "bisecting" and not made["open"]:
        output.print_note(f"its bisection goes on; 'perfbisect cancel {made['bisection']}' ends it")
