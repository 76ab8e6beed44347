"""Commands that move bisections between machines: export, import."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bisector.interfaces.cli import ask, options, output


def export(
    identity: options.Id = None,
    to: Annotated[
        Path | None, typer.Option("--output", help="Write to this file. [default: ID.tar.gz, here]")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Write a bisection with its records, raw output, consoles and logs into one archive.

    'perfbisect import' adds it to another machine, where reports are made of it, or the search goes on.
    Kernels are not in it: they are built again where they are needed.

    Examples:

      perfbisect export pipe-test-3f2a

      perfbisect export --output /srv/results/pipe-test.tar.gz
    """
    from bisector.app.transfer import default_archive

    with output.status_line() as show:
        made = ask.operations(progress=show).export(identity, to)
    if as_json:
        output.print_json(made)
    else:
        path = to or default_archive(made["id"])
        print(f"{made['id']} is in {path}: {made['files']} files, {made['bytes'] / 1e6:.1f} MB")


def import_(
    archive: Annotated[Path, typer.Argument(metavar="ARCHIVE", help="What 'perfbisect export' wrote.")],
    as_json: options.Json = False,
) -> None:
    """Add a bisection that was exported elsewhere.

    To report on it runs nothing that it contains. To resume it uses the lab, the repository and the workload
    that it names, as 'perfbisect start' with the same options would. A server takes bisections that have
    ended, and whose request names only what its settings list.

    Examples:

      perfbisect import pipe-test-3f2a.tar.gz
    """
    made = ask.operations().import_(archive)
    if as_json:
        output.print_json(made)
    else:
        print(f"{made['id']} ({made['status']}); 'perfbisect report {made['id']}' shows it")
