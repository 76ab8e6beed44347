"""Commands that show bisections and change nothing: list, status, show, report, log."""

from __future__ import annotations

import datetime
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bisector.errors import RequestError
from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.arguments import completion, number_options, priorities
from bisector.model.decisions import EXIT_CODES, Measure
from bisector.model.stored_bisection import NORMAL_PRIORITY

if TYPE_CHECKING:
    from bisector.model.stored_bisection import Summary
    from bisector.report.report_model import Material


_PAGE = 50
"""Lines of a list: what a tall terminal shows."""


def list_(
    limit: Annotated[
        int | None, number_options.whole(1, 1_000_000, f"Only so many. [default: {_PAGE}; with --json all]")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    as_json: options.Json = False,
) -> None:
    """List the bisections, the latest first.

    Examples:

      perfbisect list

      perfbisect list --all
    """
    from bisector.app import load_report

    if everything and limit is not None:
        raise RequestError("--limit and --all exclude each other", cure="give one of them")
    wiring = options.make_wiring()
    wanted = None if everything else limit or (None if as_json else _PAGE)
    found = wiring.store.list(limit=None if wanted is None else wanted + 1)
    statuses = load_report.current_statuses(wiring, found[:wanted])
    rows = [_row(one, status) for one, status in zip(found, statuses, strict=False)]
    if as_json:
        output.print_json(rows)
        return
    if not rows:
        print("No bisection yet.")
        return
    header = ("ID", "STATUS", "STARTED", "WORKLOAD", "GOOD", "BAD", "RESULT")
    cells = [tuple(str(row[name.lower()] or "") for name in header) for row in rows]
    print(output.table(header, cells, wrapped=["RESULT"], dropped=["STARTED", "GOOD", "BAD", "WORKLOAD"]))
    if len(found) > len(rows):
        output.print_note(f"the latest {len(rows)}; 'perfbisect list --all' shows the others, too")


def status(identity: options.Id = None, as_json: options.Json = False) -> None:
    """Show the state of a bisection: the current trial with its reason, costs so far, the result.

    Examples:

      perfbisect status

      perfbisect status --json
    """
    data = _status(_load(identity))
    if as_json:
        output.print_json(data)
        return
    rows = {
        "bisection": f"{data['id']}, {data['status']}",
        "range": f"{data['candidates']} candidates, {data['tested']} commits tested",
        **{name: text for name, text in data["costs"].items() if name != "overhead"},
    }
    if data["doing"]:
        rows["now"] = f"{data['doing']}\n{data['reason']}"
    if data["result"]:
        rows["result"] = data["result"]
    if data["owner"]:
        rows["begun by"] = data["owner"]
    if data["priority"] != NORMAL_PRIORITY:
        rows["priority"] = priorities.priority_text(data["priority"])
    if (action := data["last_action"]) is not None:
        from bisector.report import phrases

        why = f": {action['why']}" if action["why"] else ""
        rows["last action"] = f"{action['what']} by {action['by']}, {phrases.date(action['at'])}{why}"
    print(output.pairs(rows))


def show(
    identity: options.Id = None,
    rev: Annotated[
        str | None,
        completion.commit_option("Only this commit: a name or an id.", "--commit"),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show every trial with its samples, verdict and reason; with --commit everything about one commit.

    Examples:

      perfbisect show

      perfbisect show --commit rt-10
    """
    from bisector.app import load_report
    from bisector.report import json_report, phrases, pictures, trials

    wiring = options.make_wiring()
    material = load_report.load_material(wiring, identity)
    if rev is None:
        if as_json:
            output.print_json(json_report.render(material)["trials"])
        else:
            width = output.terminal_width() or phrases.WIDTH
            drawn = pictures.in_characters_of(sys.stdout.encoding, pictures.section(material, width))
            print("\n".join([*drawn, *trials.lines(material)]).strip("\n"))
        return
    index = load_report.commit_index(wiring, material, rev)
    known: dict[str, Any] = {
        "commit": material.graph.shas[index],
        "subject": material.commit(index).subject,
        "untestable": material.state.untestable.get(index),
        "mark": material.mark(index),
        "kernel": json_report.kernel(material, index),
        "trials": [
            t for t in json_report.render(material)["trials"] if t["commit"] == material.graph.shas[index]
        ],
        "facts": dict(material.facts(index)),
    }
    if as_json:
        output.print_json(known)
        return
    kernel = known["kernel"]
    print(
        output.pairs(
            {
                "commit": material.label(index),
                **({"untestable": known["untestable"]} if known["untestable"] else {}),
                **({"mark": known["mark"]} if known["mark"] else {}),
                **{k: str(kernel[k]) for k in ("release", "config", "image", "log") if kernel.get(k)},
            }
        )
    )
    for trial in known["trials"]:
        values = " ".join(str(run["value"]) for run in trial["runs"])
        print(f"{trial['boot']}  {trial['purpose']}  {values}\n    {trial['verdict']}")


def report(
    identity: options.Id = None,
    as_json: options.Json = False,
    to: Annotated[
        Path | None, typer.Option("--output", help="Write to this file instead of the terminal.")
    ] = None,
) -> None:
    """Print the report of a bisection, finished or not.

    Examples:

      perfbisect report

      perfbisect report --json --output report.json
    """
    from bisector.app.output_file import write_output_file
    from bisector.report import json_report, text

    material = _load(identity, so_far=True)
    content = json.dumps(json_report.render(material), indent=2) + "\n" if as_json else text.render(material)
    if to is not None:
        write_output_file(to, content)
        output.print_note(f"report written to {to}")
    else:
        print(content, end="")


def log(identity: options.Id = None, as_json: options.Json = False) -> None:
    """Print a bisection as `git bisect log` does; `git bisect replay` accepts it.

    Examples:

      perfbisect log

      perfbisect log > log; git bisect replay log
    """
    from bisector.report import bisect_log

    material = _load(identity)
    if as_json:
        output.print_json({"id": material.id, "steps": bisect_log.steps(material)})
    else:
        print(bisect_log.render(material), end="")


def _load(identity: str | None, *, so_far: bool = False) -> Material:
    from bisector.app import load_report

    return load_report.load_material(options.make_wiring(), identity, so_far=so_far)


def result(material: Material) -> str:
    """Return the conclusion in one line; empty while there is none."""
    from bisector.report import phrases

    conclusion = material.conclusion
    if conclusion is None:
        return ""
    names = "; ".join(
        ", ".join(material.label(i) for i in f.commits[:3]) + (" ..." if len(f.commits) > 3 else "")
        for f in conclusion.culprits
    )
    return f"{phrases.ENDINGS[conclusion.ending].lower()}{': ' if names else ''}{names}"


def _told_by_people(one: Summary | Material) -> dict[str, Any]:
    action = one.action
    return {
        "priority": one.priority,
        "owner": one.owner,
        "last_action": None
        if action is None
        else {"what": action.what, "by": action.by, "why": action.why, "at": action.at},
    }


def _row(summary: Summary, status: str) -> dict[str, Any]:
    started = datetime.datetime.fromtimestamp(summary.created, datetime.UTC)
    ending, shas = summary.ending, [sha[:12] for sha in summary.culprits]
    found = f"{ending.value} {' '.join(shas[:3])}{' ...' if len(shas) > 3 else ''}".strip() if ending else ""
    return {
        "id": summary.id,
        "status": status,
        "started": started.strftime("%Y-%m-%d %H:%M"),
        "workload": Path(summary.workload or "").name,
        "good": summary.good,
        "bad": summary.bad,
        "result": found,
        "exit_code": EXIT_CODES[ending] if ending is not None else None,
        **_told_by_people(summary),
    }


def _status(material: Material) -> dict[str, Any]:
    from bisector.report import trials

    last = material.decisions[-1][1] if material.decisions else None
    doing = last if material.status == "running" and isinstance(last, Measure) else None
    return {
        "id": material.id,
        "status": material.status,
        "candidates": sum(material.graph.candidate),
        "tested": len({t.booted.commit for t in material.trials}),
        "untestable": len(material.state.untestable),
        "costs": trials.costs(material),
        "doing": f"{doing.purpose}: {material.label(doing.commit)}" if doing else "",
        "reason": doing.reason if doing else "",
        "result": result(material),
        "exit_code": EXIT_CODES[material.conclusion.ending] if material.conclusion else None,
        **_told_by_people(material),
    }
