"""Commands that move bisections between machines: export, import."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bisector.interfaces.cli import options, output


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
    from bisector.app import load_report, transfer

    wiring = options.make_wiring()
    stored = load_report.find_bisection(wiring, identity)
    path = to or Path(f"{stored.id}.tar.gz")
    with output.status_line() as show:
        files = transfer.export_bisection(wiring, stored, path, show)
    size = path.stat().st_size
    if as_json:
        output.print_json({"id": stored.id, "file": str(path.resolve()), "files": files, "bytes": size})
    else:
        print(f"{stored.id} is in {path}: {files} files, {size / 1e6:.1f} MB")


def import_(
    archive: Annotated[Path, typer.Argument(metavar="ARCHIVE", help="What 'perfbisect export' wrote.")],
    as_json: options.Json = False,
) -> None:
    """Add a bisection that was exported elsewhere.

    To report on it runs nothing that it contains. To resume it uses the lab, the repository and the workload
    that it names, as 'perfbisect start' with the same options would.

    Examples:

      perfbisect import pipe-test-3f2a.tar.gz
    """
    from bisector.app import transfer

    stored = transfer.import_bisection(options.make_wiring(), archive)
    if as_json:
        output.print_json({"id": stored.id, "status": stored.status})
    else:
        print(f"{stored.id} ({stored.status}); 'perfbisect report {stored.id}' shows it")
