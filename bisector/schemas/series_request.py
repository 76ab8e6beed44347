"""A nightly series as asked for over the network: it names what the server's settings list.

As in `remote_request` there is no path, command or URL in it, and no text that git could take for an option.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from bisector.model.series import MAX_BOOTS, MAX_BUDGET_HOURS, Series
from bisector.schemas.loading import Spec, matching
from bisector.schemas.remote_request import Recipe, Threshold, listed
from bisector.schemas.web_settings import Name, Rev, WebSettings, WorkloadName

_Branch = Annotated[
    str,
    matching(
        r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9_./+*-]{0,199}",
        "a branch, such as 'origin/master', or tags, such as 'v6.*'",
    ),
]
_Cron = Annotated[
    str,
    matching(r"[0-9A-Za-z*,/#-]{1,99}( [0-9A-Za-z*,/#-]{1,99}){4}", "five fields, such as '30 2 * * *'"),
]
_Zone = Annotated[str, matching(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}", "a time zone, such as Europe/Berlin")]


class RemoteSeries(Spec):
    """A request from elsewhere; its fields mean the same as the options of `perfbisect series add`."""

    name: Name
    repo: Name | None = Field(default=None, description="a repository's name; null: the server's only one")
    branch: _Branch
    workload: WorkloadName
    cron: _Cron
    budget: float = Field(gt=0, le=MAX_BUDGET_HOURS, description="machine hours in seven days")
    testbed: Name | None = Field(default=None, description="null: the first that fits")
    time_zone: _Zone = "UTC"
    reference: Rev | None = Field(default=None, description="null: the tip of now")
    boots: int = Field(default=4, ge=1, le=MAX_BOOTS)
    threshold: Threshold | None = None
    recipe: Recipe | None = None
    dry_run: bool = Field(default=False, description="only say what it would be")

    def resolve(self, web: WebSettings, shipped: Sequence[str], lab: Sequence[str]) -> dict[str, Any]:
        """Return the values of a `Series`, with what the server lists under these names.

        shipped: the names of its workloads; lab: of its testbeds. Raises RequestError for any other name.
        """
        given = self.model_dump(exclude_none=True, exclude={"repo", "workload", "testbed", "dry_run"})
        named = () if self.testbed is None else (self.testbed,)
        found = listed(web, shipped, lab, self.repo, self.workload, named)
        (testbed,) = found.pop("testbeds") or ("",)
        return {"reference": "", **given, **found, "testbed": testbed}


def remote_series(asked: Series, repo: str, *, dry_run: bool) -> dict[str, Any]:
    """Return what to send for a series of the command line. repo: its name at the server, '' for none."""
    fields = ("name", "branch", "workload", "cron", "budget", "time_zone", "boots", "threshold")
    values = {name: getattr(asked, name) for name in fields}
    optional = {name: getattr(asked, name) or None for name in ("testbed", "reference", "recipe")}
    return {**values, **optional, "repo": repo or None, "dry_run": dry_run}
