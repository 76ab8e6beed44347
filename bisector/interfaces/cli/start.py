"""`perfbisect start` and `resume`: running a bisection, watching it, and saying how it ended."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from bisector.app.wiring import Wiring
from bisector.errors import Interrupted, RequestError
from bisector.interfaces.cli import ask, options, output
from bisector.interfaces.cli.arguments import priorities, text_options
from bisector.interfaces.cli.terminal import ReaderGone
from bisector.model.decisions import EXIT_CODES
from bisector.schemas.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bisector.app.mail.notices import Notice
    from bisector.app.operations.operations import Operations
    from bisector.app.operations.remote_operations import RemoteOperations
    from bisector.app.time_left import ExpectedWork
    from bisector.interfaces.cli.progress import ProgressDisplay
    from bisector.report.report_model import Material


@options.takes_request
def start(
    wiring: Wiring,
    request: Request,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what would be done, as 'plan' does; write only into the cache."),
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Queue it for whoever executes bisections here, and end.")
    ] = False,
    priority: Annotated[int | None, priorities.option()] = None,
    notify: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOW",
            help="Tell somebody of the end or a failure: mail:me@example.org, webhook:URL, command:PROGRAM; "
            "several times for several.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Find the commit between GOOD and BAD that made WORKLOAD slower; with --find fix, faster.

    The same request goes on where an unfinished one stopped. Exit codes: 0 culprit or fix proven, 1 wrong
    request, 2 not reproduced, 3 infrastructure, 4 a set that cannot be told apart, 5 inconclusive, spread
    over many commits or budget spent, 130 interrupted.

    Examples:

      perfbisect start --repo ~/linux --good v6.1 --bad v6.2 --workload pipe-test

      perfbisect start --good v6.1 --bad v6.2 --workload ./mine --skip v6.2-rc1 --max-hours 8 -- kernel/sched

      perfbisect start --good v6.1 --bad v6.2 --workload pipe-test --threshold 2% --dry-run

      perfbisect start --find fix --bad v6.1 --good v6.2 --workload pipe-test

      perfbisect start --kernels ./debs --good 6.1.172-1 --bad 6.1.192-1 --workload pipe-test

      perfbisect start --good v6.1 --bad v6.2 --workload pipe-test --notify command:./tell-me

      perfbisect start --good v6.1 --bad v6.2 --run 'dd if=/dev/zero of=/dev/null bs=1 count=100000'
    """
    from bisector.app.find_culprit import find_culprit
    from bisector.app.mail.notices import read_notices
    from bisector.interfaces.cli import plan

    at_server = wiring.settings.server is not None
    told = _told_by_server(notify or ()) if at_server else {}
    notices = [] if at_server else read_notices(wiring, notify or (), waits=not detach)
    if dry_run:
        plan.make_and_print(wiring, request, told, as_json=as_json)
        return
    if at_server:
        _start_at_server(request, priority, told, detach=detach, as_json=as_json)
        return
    if detach:
        _queue(wiring, request, priority, notices, as_json=as_json)
        return
    found = find_culprit(wiring, request, Watcher(shows_result(wiring, as_json=as_json)), priority, notices)
    exit_as_concluded(found)


def _queue(
    wiring: Wiring, request: Request, priority: int | None, notices: Sequence[Notice], *, as_json: bool
) -> None:
    from bisector.app.execution.queue_state import read_queue
    from bisector.app.find_culprit import queue

    stored = queue(wiring, request, Watcher(), priority, notices)
    executor = read_queue(wiring).executor
    _print_queued({"id": stored.id, "status": "queued", "executor": executor}, as_json=as_json)


def _print_queued(queued: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        output.print_json(queued)
        return
    print(f"{queued['id']} is queued; 'perfbisect watch {queued['id']}' shows what happens")
    output.print_note(queued["executor"] or "nobody executes bisections here yet: 'perfbisect worker' does")


def _told_by_server(notify: Sequence[str]) -> dict[str, Any]:
    """Return what a request says of --notify. Raises RequestError; the server looks at the rest of it."""
    if any(one.startswith("command:") for one in notify):
        raise RequestError(
            "--notify command: runs a program of this machine; the bisection is executed at a server",
            cure="use mail: or webhook:; or here a program after 'perfbisect watch ID', which ends with it",
        )
    return {"notify": list(notify)} if notify else {}  # servers of earlier versions do not know it


def _start_at_server(
    request: Request, priority: int | None, told: Mapping[str, Any], *, detach: bool, as_json: bool
) -> None:
    from bisector.schemas.remote_request import remote_request

    server = ask.server()
    queued = server.start({**remote_request(request), "priority": priority, **told})
    if detach:
        _print_notes(queued)
        _print_queued(queued, as_json=as_json)
    else:
        watch_queued(server, queued, as_json=as_json)


def watch_queued(server: RemoteOperations, queued: dict[str, Any], *, as_json: bool) -> None:
    """Watch what was queued at a server, after its notes."""
    _print_notes(queued)
    _watch_at_server(server, queued["id"], as_json=as_json)


def _print_notes(queued: dict[str, Any]) -> None:
    for note in queued.pop("notes"):
        output.print_note(note)


def _watch_at_server(server: RemoteOperations, identity: str, *, as_json: bool) -> None:
    """Watch what was started or resumed there; Ctrl-C and SIGTERM leave it running, and say so."""
    try:
        ended = server.watch(identity, Watcher(interrupts=False))
    except KeyboardInterrupt as error:
        raise Interrupted(
            f"the bisection '{identity}' goes on at the server; it is no longer watched",
            cure=f"perfbisect watch {identity}; 'perfbisect cancel {identity}' ends it",
        ) from error
    print_ending(server, ended, as_json=as_json)


def resume(
    identity: options.Id = None,
    lab: options.Lab = None,
    reason: text_options.Reason = "",
    as_json: options.Json = False,
) -> None:
    """Go on with a bisection that was interrupted, killed or stopped by a failing machine.

    Without an id: the latest that has not ended. Finished builds and runs are not repeated.

    Examples:

      perfbisect resume

      perfbisect resume pipe-test-3f2a --lab lab.yml
    """
    from bisector.app import find_culprit

    wiring = options.make_wiring(lab=lab, remote=True)
    if wiring.settings.server is not None:
        options.refuse_lab(lab)
        server = ask.server()
        name = server.resume(identity, reason)["id"]
        output.print_note(f"bisection {name}: going on")
        _watch_at_server(server, name, as_json=as_json)
        return
    watcher = Watcher(shows_result(wiring, as_json=as_json))
    exit_as_concluded(find_culprit.resume(wiring, identity, watcher, reason))


class Watcher:
    """observer.Observer: notes and progress on stderr."""

    def __init__(
        self, show: Callable[[Material], None] = lambda material: None, *, interrupts: bool = True
    ) -> None:
        """show: prints the result; interrupts: whether SIGTERM ends the bisection, and not only this
        process."""
        self.concluded = show
        self.stop = threading.Event()
        self._interrupts = interrupts
        if interrupts:
            signal.signal(signal.SIGTERM, lambda *_: self.stop.set())

    def note(self, text: str) -> None:
        """Print a note. That nobody reads it any more, as after `| head`, counts as Ctrl-C."""
        try:
            output.print_note(text)
        except ReaderGone:
            if not self._interrupts:
                raise
            self.stop.set()

    def progress(self, label: Callable[[int], str], expected: ExpectedWork | None) -> ProgressDisplay:
        """Return the live display."""
        from bisector.interfaces.cli.progress import ProgressDisplay

        return ProgressDisplay(label, expected, gone=self.stop.set if self._interrupts else None)


def shows_result(wiring: Wiring, *, as_json: bool) -> Callable[[Material], None]:
    """Return what prints how a bisection ended. SIGTERM ends the process from then on."""
    from bisector.report import json_report, text

    def show(material: Material) -> None:
        if as_json:
            output.print_json(json_report.render(material))
        else:
            print("\n" + text.short(material), end="")
            report = wiring.bisection_folder(material.id) / "report.txt"
            print(f"\nreport: {report} (and report.json); 'perfbisect report' prints it")
        sys.stdout.flush()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    return show


def exit_as_concluded(material: Material) -> NoReturn:
    """Exit with the code of the bisection's ending."""
    assert material.conclusion is not None, "a bisection that returns has concluded"
    raise typer.Exit(EXIT_CODES[material.conclusion.ending])


def print_ending(operations: Operations, identity: str, *, as_json: bool) -> None:
    """Print how a bisection ended that others executed, and exit with its code."""
    report = operations.report(identity)
    if as_json:
        output.print_json(report)
    else:
        print("\n" + operations.report_text(identity, short=True), end="")
        path = Path(report["files"]["raw output"]) / "report.txt"
        # Where another host wrote it, or a server, it is not here.
        place = f"{path} (and report.json); " if path.exists() else ""
        print(f"\nreport: {place}'perfbisect report {identity}' prints it")
    raise typer.Exit(report["exit_code"])
