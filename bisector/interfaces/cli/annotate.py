"""Commands that change a bisection: mark, discard, cancel."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from bisector.app.operations.operations import Said
from bisector.errors import RequestError
from bisector.interfaces.cli import ask, options, output
from bisector.interfaces.cli.arguments import completion, text_options

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
    note: text_options.Note = "",
    as_json: options.Json = False,
) -> None:
    """Set the verdict of a commit, which overrides its measurements. The search continues with it.

    Examples:

      perfbisect mark pipe-test-3f2a rt-10 bad

      perfbisect mark pipe-test-3f2a rt-11 skip --note 'breaks the network'
    """
    found = ask.operations().mark(identity, rev, verdict, note)
    if as_json:
        output.print_json(found)
    else:
        output.print_note(f"{found['id']}: {rev} is {found['verdict']}")


def discard(
    identity: Needed,
    boot: Annotated[str | None, typer.Option(help="Discard the samples of this boot.")] = None,
    testbed: Annotated[str | None, typer.Option(help="Discard all samples of this testbed.")] = None,
    note: text_options.Note = "",
    as_json: options.Json = False,
) -> None:
    """Discard the samples of a boot or a testbed. The report shows them, but they no longer count.

    Examples:

      perfbisect discard pipe-test-3f2a --boot boot-012 --note 'a backup ran'

      perfbisect discard pipe-test-3f2a --testbed guest
    """
    if (boot is None) == (testbed is None):
        raise RequestError(
            "give either --boot or --testbed: whose samples are discarded",
            cure="'perfbisect show' names every boot",
        )
    kind: Literal["boot", "testbed"] = "boot" if boot is not None else "testbed"
    found = ask.operations().discard(identity, kind, str(boot or testbed), note)
    if as_json:
        output.print_json(found)
    else:
        output.print_note(f"{found['id']}: the data of {kind} {found['name']} no longer count")


def cancel(
    identity: options.Id = None, reason: text_options.Reason = "", as_json: options.Json = False
) -> None:
    """End a bisection for good, without a conclusion. What was measured stays and can be reported.

    A process that runs it stops and cleans up. To continue later, interrupt it instead (Ctrl-C).

    Examples:

      perfbisect cancel

      perfbisect cancel pipe-test-3f2a --reason 'the machine is needed'
    """
    found = ask.operations().cancel(identity, reason)
    if as_json:
        output.print_json(found)
    else:
        name = found["id"]
        output.print_note(f"{name} is cancelled; 'perfbisect report {name}' shows how far it came")
