"""Commands that change a bisection: mark, discard, cancel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from bisector.errors import RequestError
from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.arguments import completion

Said = Literal["good", "bad", "skip", "old", "new"]
Note = Annotated[str, typer.Option(help="The reason, for the report.")]
Needed = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The bisection's id, or its beginning.",
        autocompletion=completion.bisections,
    ),
]


def mark(
    identity: Needed,
    rev: Annotated[str, completion.commit_argument("A commit of the range.")],
    verdict: Annotated[
        Said,
        typer.Argument(metavar="VERDICT", help="good, bad or skip; or old or new, as for git bisect."),
    ],
    note: Note = "",
    as_json: options.Json = False,
) -> None:
    """Set the verdict of a commit, which overrides its measurements. The search continues with it.

    Examples:

      perfbisect mark 3f2a rt-10 bad

      perfbisect mark 3f2a rt-11 skip --note 'breaks the network'
    """
    from bisector.app import bisections, load_report
    from bisector.schemas.request import read_accepted

    wiring = options.make_wiring()
    stored = load_report.find_bisection(wiring, identity)
    request = read_accepted(stored.request).request
    if request.trust_repo:
        wiring.trust(Path(request.repo))
    commit = load_report.find_commit(wiring, stored.id, stored.graph, request.model_dump(), rev)
    sha = stored.graph.shas[commit]
    said = request.terms.verdict(verdict)
    bisections.mark(wiring.store, stored, sha, said, note)
    if as_json:
        output.print_json({"id": stored.id, "commit": sha, "verdict": said, "note": note})
    else:
        output.print_note(f"{stored.id}: {rev} is {said}")


def discard(
    identity: Needed,
    boot: Annotated[str | None, typer.Option(help="Discard the samples of this boot.")] = None,
    testbed: Annotated[str | None, typer.Option(help="Discard all samples of this testbed.")] = None,
    note: Note = "",
    as_json: options.Json = False,
) -> None:
    """Discard the samples of a boot or a testbed. The report shows them, but they no longer count.

    Examples:

      perfbisect discard 3f2a --boot b12 --note 'a backup ran'

      perfbisect discard 3f2a --testbed guest
    """
    if (boot is None) == (testbed is None):
        raise RequestError(
            "give either --boot or --testbed: whose samples are discarded",
            cure="'perfbisect show' names every boot",
        )
    from bisector.app import bisections, load_report

    wiring = options.make_wiring()
    stored = load_report.find_bisection(wiring, identity)
    kind: Literal["boot", "testbed"] = "boot" if boot is not None else "testbed"
    name = str(boot or testbed)
    bisections.discard(wiring.store, stored, kind, name, note)
    if as_json:
        output.print_json({"id": stored.id, "kind": kind, "name": name, "note": note})
    else:
        output.print_note(f"{stored.id}: the data of {kind} {name} no longer count")


def cancel(identity: options.Id = None, reason: options.Reason = "", as_json: options.Json = False) -> None:
    """End a bisection for good, without a conclusion. What was measured stays and can be reported.

    A process that runs it stops and cleans up. To continue later, interrupt it instead (Ctrl-C).

    Examples:

      perfbisect cancel

      perfbisect cancel pipe-test-3f2a --reason 'the machine is needed'
    """
    from bisector.app import bisections, load_report

    wiring = options.make_wiring()
    stored = load_report.find_bisection(wiring, identity)
    by = wiring.settings.owner
    bisections.cancel(wiring.store, stored, by, reason)
    if as_json:
        output.print_json({"id": stored.id, "status": "cancelled", "by": by, "reason": reason})
    else:
        output.print_note(f"{stored.id} is cancelled; 'perfbisect report {stored.id}' shows how far it came")
