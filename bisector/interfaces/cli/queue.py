"""Commands for bisections that others execute: queue, watch, pause, priority, worker."""

from __future__ import annotations

import json
import signal
import socket
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from bisector.interfaces.cli import ask, options, output
from bisector.interfaces.cli.annotate import Needed
from bisector.interfaces.cli.arguments import priorities, text_options
from bisector.model.format import count
from bisector.report.row_words import queue_words

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.engine.events import Event


def queue(as_json: options.Json = False) -> None:
    """Show which bisections are executed here, which wait, and for what.

    Examples:

      perfbisect queue

      perfbisect queue --json
    """
    found = ask.operations().queue()
    now = found.pop("now")
    if as_json:
        output.print_json(found)
        return
    rows = found["bisections"]
    if not rows:
        print("Nothing is queued.")
        return
    several = len({row["owner"] for row in rows}) > 1  # in the last column, which a narrow terminal shows
    header = ("ID", "STATUS", "PRIORITY", "WORKLOAD", "TESTBEDS", "BOOTS", "END", "NOW")
    cells = [
        (
            row["id"],
            row["status"],
            queue_words.priority_text(row["priority"]),
            row["workload"] or "",
            ", ".join(row["testbeds"]),
            str(row["boots"]),
            queue_words.expected(row["expected_end"], now),
            f"{row['owner']}: {doing}" if several and row["owner"] else doing,
        )
        for row in rows
        for doing in [queue_words.doing_now(row, now)]
    ]
    print(output.table(header, cells, wrapped=["NOW"], dropped=["WORKLOAD", "TESTBEDS", "BOOTS"]))
    if found["executor"] is None:
        output.print_note("nobody executes them: 'perfbisect worker' does, and so does the next 'start'")


def watch(identity: options.Id = None, as_json: options.Json = False) -> None:
    """Watch a bisection that others execute, until it ends; then its result, and its exit code.

    Ctrl-C ends the watching, and nothing else.

    Examples:

      perfbisect watch

      perfbisect watch pipe-test-3f2a
    """
    from bisector.interfaces.cli.start import Watcher, print_ending

    operations = ask.operations()
    print_ending(operations, operations.watch(identity, Watcher(interrupts=False)), as_json=as_json)


def pause(
    identity: options.Id = None, reason: text_options.Reason = "", as_json: options.Json = False
) -> None:
    """Let a bisection rest until 'perfbisect resume'; whoever executes it lets go of its testbeds.

    Examples:

      perfbisect pause

      perfbisect pause pipe-test-3f2a --reason 'the machine is needed'
    """
    found = ask.operations().pause(identity, reason)
    if as_json:
        output.print_json(found)
    else:
        output.print_note(f"{found['id']} is paused; 'perfbisect resume {found['id']}' goes on")


def priority(
    identity: Needed,
    value: Annotated[int, priorities.argument()],
    reason: text_options.Reason = "",
    as_json: options.Json = False,
) -> None:
    """Serve a bisection before or after others, from the next boots on.

    A more urgent one gets each testbed that it can use, as soon as a boot ends there. Equals share.

    Examples:

      perfbisect priority pipe-test-3f2a high --reason 'the release waits for it'

      perfbisect priority pipe-test-3f2a 7
    """
    found = ask.operations().set_priority(identity, value, reason)
    if as_json:
        output.print_json(found)
    else:
        output.print_note(f"{found['id']} has priority {queue_words.priority_text(value)} now")


def worker(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="With a database server: what others call it. [default: this host]"
        ),
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="End when nothing is queued any more.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only check all that this worker needs."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each event as a line of JSON; with --check, the checks.")
    ] = False,
) -> None:
    """Execute the bisections that are queued here, until stopped with Ctrl-C or SIGTERM.

    Several bisections share the testbeds, boot by boot. What is not done stays queued. With a database
    server, workers on several hosts share the bisections; a testbed whose inventory names a worker
    (perfbisect_worker) belongs to that one.

    Examples:

      perfbisect start --good v6.1 --bad v6.2 --workload pipe-test --detach

      perfbisect worker --until-idle

      perfbisect worker rack1 --check
    """
    from bisector.app.find_culprit import serve

    wiring = options.make_wiring()
    if check:
        _check_worker(wiring, name or socket.gethostname(), as_json=as_json)
        return
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    output.print_note("executing what is queued; Ctrl-C ends it")
    serve(wiring, _print_event_as_json if as_json else print_event, stop, until_idle=until_idle, name=name)
    output.print_note(
        "nothing is left to execute here" if until_idle and not stop.is_set() else "stopped; nothing is lost"
    )


def _check_worker(wiring: Wiring, name: str, *, as_json: bool) -> None:
    from bisector.app.execution.worker_check import check_worker
    from bisector.interfaces.cli.doctor import check_row, print_checks

    checks = check_worker(wiring, name)
    if as_json:
        output.print_json([check_row(check) for check in checks])
    else:
        print_checks(checks)
    wrong = [check.exit_code for check in checks if not check.ok and not check.optional]
    if wrong:
        raise typer.Exit(min(wrong))  # a wrong inventory before what may come back by itself


def print_event(name: str, event: Event) -> None:
    """Print what happens in a bisection that somebody else began."""
    if event.kind in ("decision", "note", "trouble", "done"):
        testbed = f" on {event.testbed}" if event.testbed else ""
        boots = f" ({count(event.boots, 'boot')})" if event.boots else ""
        output.print_note(f"{name}{testbed}: {event.text}{boots}")


def _print_event_as_json(name: str, event: Event) -> None:
    line = {
        "id": name,
        "kind": event.kind,
        "text": event.text,
        "reason": event.reason,
        "testbed": event.testbed,
        "seconds": event.seconds,
        "value": event.value,
        "builds": event.builds,
        "boots": event.boots,
        "runs": event.runs,
    }
    print(json.dumps(line), flush=True)
