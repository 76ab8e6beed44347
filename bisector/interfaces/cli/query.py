"""Commands that show bisections and change nothing: list, status, show, report, log."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from bisector.errors import RequestError
from bisector.interfaces.cli import ask, options, output
from bisector.interfaces.cli.arguments import completion, number_options
from bisector.interfaces.cli.terminal import write_document
from bisector.model.commit_graph import as_written, short_name
from bisector.model.format import count
from bisector.model.stored_bisection import NORMAL_PRIORITY
from bisector.report.phrases import run_value
from bisector.report.row_words import queue_words

_STARTED = "STARTED (UTC)"
_LAST_LINES = 12
"""Of what a boot that failed printed; its folder has the rest."""


def list_(
    limit: number_options.Limit = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All of them, nights of series that have ended, too.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """List the bisections, the latest first.

    Examples:

      perfbisect list

      perfbisect list --all
    """
    if everything and limit is not None:
        raise RequestError("--limit and --all exclude each other", cure="give one of them")
    wanted = None if everything else limit or (None if as_json else number_options.DEFAULT_LIMIT)
    found = ask.operations().bisections(None if wanted is None else wanted + 1)
    rows = found[:wanted]
    if as_json:
        output.print_json(rows)
        return
    if not rows:
        print("No bisection yet.")
        return
    header = ("ID", "STATUS", _STARTED, "WORKLOAD", "GOOD", "BAD", "RESULT")
    # Nights and tries are asked for by full ids.
    cells = [
        tuple(as_written(str(row[name.partition(" ")[0].lower()] or "")) for name in header) for row in rows
    ]
    print(output.table(header, cells, wrapped=["RESULT"], dropped=[_STARTED, "GOOD", "BAD", "WORKLOAD"]))
    if len(found) > len(rows):
        output.print_note(f"the latest {len(rows)}; 'perfbisect list --all' shows the others, too")


def status(identity: options.Id = None, as_json: options.Json = False) -> None:
    """Show the state of a bisection: the current trial with its reason, costs so far, the result.

    Examples:

      perfbisect status

      perfbisect status --json
    """
    data = ask.operations().status(identity)
    if as_json:
        output.print_json(data)
        return
    tested = count(data["tested"], data.get("unit", "commit"))  # a server of before tells no unit
    candidates = count(data["candidates"], "candidate")
    if data.get("attempt"):  # a server of before does not tell it
        candidates = "three kernels side by side"
    rows = {
        "bisection": f"{data['id']}, {data['status']}",
        "range": f"{candidates}, {tested} tested",
        **{name: text for name, text in data["costs"].items() if name != "overhead"},
    }
    if data["doing"]:
        rows["now"] = f"{data['doing']}\n{data['reason']}"
    if data["result"]:
        rows["result"] = data["result"]
    for testbed, words in data.get("consoles", {}).items():  # a server of before tells none
        rows[f"console of {testbed}"] = words
    if data["owner"]:
        rows["begun by"] = data["owner"]
    if data["priority"] != NORMAL_PRIORITY:
        rows["priority"] = queue_words.priority_text(data["priority"])
    if (action := data["last_action"]) is not None:
        from bisector.report import phrases

        why = f": {action['why']}" if action["why"] else ""
        rows["last action"] = f"{action['what']} by {action['by']}, {phrases.date(action['at'])}{why}"
    if data["status"] == "failed":
        rows["go on with"] = f"perfbisect resume {data['id']}"
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
    operations = ask.operations()
    if rev is None:
        if as_json:
            output.print_json(operations.trials(identity))
        else:
            from bisector.report import phrases, pictures

            drawn = operations.drawing(identity, output.terminal_width() or phrases.TEXT_COLUMNS)
            plain = pictures.in_characters_of(sys.stdout.encoding, drawn["pictures"])
            print("\n".join([*plain, *drawn["trials"]]).strip("\n"))
        return
    known = operations.commit(identity, rev)
    if as_json:
        output.print_json(known)
        return
    kernel, sha = known["kernel"], short_name(known["commit"])
    print(
        output.pairs(
            {
                "commit": f'{sha} ("{known["subject"]}")' if known["subject"] else sha,
                **({"untestable": known["untestable"]} if known["untestable"] else {}),
                **({"mark": known["mark"]} if known["mark"] else {}),
                **{k: str(kernel[k]) for k in ("release", "config", "image", "log") if kernel.get(k)},
                **({} if known["trials"] else {"trials": "none"}),
            }
        )
    )
    unit = known.get("unit", "")  # a server of before does not tell it
    for trial in known["trials"]:
        shown = [run_value(f"{r['value']:.12g}", r["flags"], warmup=r["warmup"]) for r in trial["runs"]]
        values = " ".join([*shown, unit] if shown else [])
        print(f"{trial['boot']}  {trial['purpose']}  {values}".rstrip() + f"\n    {trial['verdict']}")
        for line in trial["note"].get("details", "").rstrip().splitlines()[-_LAST_LINES:]:
            print(f"    | {line}")


def report(
    identity: options.Id = None,
    as_json: options.Json = False,
    to: Annotated[
        Path | None, typer.Option("--output", help="Write to this file instead of the terminal.")
    ] = None,
    html: options.Html = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of what --json prints, and end.")
    ] = False,
    mail_draft: Annotated[
        bool,
        typer.Option("--mail-draft", help="Print the mail to maintainers, as 'git send-email' takes it."),
    ] = False,
) -> None:
    """Print the report of a bisection, finished or not.

    Examples:

      perfbisect report

      perfbisect report --json --output report.json

      perfbisect report --html report.html

      perfbisect report --mail-draft --output mail.mbox
    """
    from bisector.app.output_file import write_output_file

    given = {"--json": as_json, "--html": html is not None, "--schema": schema, "--mail-draft": mail_draft}
    wanted = [name for name in given if given[name]]
    if to is not None and (html is not None or schema):
        wanted.append("--output")
    if len(wanted) > 1:
        raise RequestError(f"{wanted[0]} and {wanted[1]} exclude each other", cure="give one of them")
    if schema:
        from bisector.schemas import report_document

        output.print_json(report_document.json_schema())
        return
    if mail_draft:
        _print_or_write(_mail_draft(identity, to), to, "mail", document=True)
        return
    operations = ask.operations()
    if html is not None:
        write_output_file(html, operations.report_page(identity))
        output.print_note(f"report written to {html}")
        return
    if as_json:
        content = json.dumps(operations.report(identity), indent=2) + "\n"
    else:
        content = operations.report_text(identity)
    _print_or_write(content, to, "report", document=as_json)


def _mail_draft(identity: str | None, to: Path | None) -> str:
    from bisector.app.mail.outbox_view import mail_draft

    mails, reasons = mail_draft(options.make_wiring(), identity)
    for reason in reasons:
        output.print_note(f"warning: better not sent: {reason}")
    if len(mails) > 1:
        split = f"git mailsplit -o. {shlex.quote(str(to)) if to is not None else 'FILE'}"
        files = f"{1:04}..{len(mails):04}"
        output.print_note(
            f"warning: these are {len(mails)} mails, of which 'git send-email' would make one: '{split}' "
            f"writes them as {files}, each to be sent alone"
        )
    return "\n".join(mails)


def _print_or_write(content: str, to: Path | None, what: str, *, document: bool) -> None:
    from bisector.app.output_file import write_output_file

    if to is not None:
        write_output_file(to, content)
        output.print_note(f"{what} written to {to}")
    elif document:
        write_document(content)
    else:
        print(content, end="")


def log(identity: options.Id = None, as_json: options.Json = False) -> None:
    """Print a bisection as `git bisect log` does; `git bisect replay` accepts it.

    Examples:

      perfbisect log

      perfbisect log > log; git bisect replay log
    """
    operations = ask.operations()
    if as_json:
        output.print_json(operations.log(identity))
    else:
        print(operations.log_text(identity), end="")
