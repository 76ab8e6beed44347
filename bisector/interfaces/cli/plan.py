"""`perfbisect plan`: what would be done, and what it would probably cost. Writes only into the cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bisector.app.wiring import Wiring
from bisector.interfaces.cli import ask, options, output
from bisector.schemas.request import Request

if TYPE_CHECKING:
    from bisector.app.operations.operations import Values


@options.takes_request
def plan(wiring: Wiring, request: Request, as_json: options.Json = False) -> None:
    """Say what `start` would do: candidates, first steps, expected builds, boots, runs and time.

    Nothing is built or booted, only the cache is written; the numbers come from simulated searches.

    Example:

      perfbisect plan --repo ~/linux --good v6.1 --bad v6.2 --workload pipe-test
    """
    make_and_print(wiring, request, {}, as_json=as_json)


def make_and_print(wiring: Wiring, request: Request, told: Mapping[str, Any], *, as_json: bool) -> None:
    """Plan a request here, or at the server of the settings. Raises RequestError.

    told: what a request to a server says besides.
    """
    with output.status_line() as show:
        if wiring.settings.server is not None:
            from bisector.schemas.remote_request import remote_request

            made = ask.server(wiring.settings).plan({**remote_request(request), **told})
        else:
            from bisector.app.operations.plan_values import plan_of

            made = plan_of(wiring, request, show)
    print_plan(made, as_json=as_json)


def print_plan(made: Values, *, as_json: bool) -> None:
    """Print a plan, of a bisection or a try."""
    if as_json:
        output.print_json(made["plan"])
    else:
        print(output.pairs(made["rows"]))
