"""A bisection as asked for over the network: it names what the server's settings list, and nothing else.

There is no path, command or patch file in it, no URL but a webhook's on another machine, and no text that a
program could take for an option. What is not here cannot be asked for: `--run`, `--apply`, `--trust-repo` and
`--lab` would each be a way to execute something on the server or on a machine of its lab.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from bisector.errors import RequestError, nearest
from bisector.model.goal import Find
from bisector.model.stored_bisection import FIRST_PRIORITY, LAST_PRIORITY, workload_name
from bisector.schemas.loading import Spec, matching
from bisector.schemas.mail_settings import foreign_webhook_url
from bisector.schemas.ranges import Alpha, Amount, BuildsAhead, Hours
from bisector.schemas.refusal import describe_problems
from bisector.schemas.request import Request, option_name
from bisector.schemas.web_settings import REV, Name, Rev, WebSettings, WorkloadName

_MOST = 100
"""Entries of a list: a request has a few."""

_Value = Annotated[
    str,
    matching(
        r"[A-Za-z0-9][A-Za-z0-9._:,=+%-]{0,99}",
        "letters, digits and . _ : , = + % -, at most 100 characters, beginning with a letter or digit",
    ),
]
_Skipped = Annotated[str, matching(rf"{REV}(\.\.{REV})?", "a commit, or a range A..B")]
_Fix = Annotated[str, matching(rf"{REV}(:{REV})?", "a commit, or REV:GUILTY")]
_Subpath = Annotated[
    str,
    matching(
        r"(?!.*(^|/)\.\.?(/|$))[A-Za-z0-9_.][A-Za-z0-9_.+/-]{0,199}",
        "a path of the kernel's tree, without '..'",
    ),
]
_Monitor = Annotated[
    str,
    # Neither '/' nor '.': perf would take a path behind -e for a program to load.
    matching(
        r"[a-z][a-z-]{0,30}(=[A-Za-z0-9_:,-]{1,500})?", "a monitor's name, or NAME=A,B with event names"
    ),
]
Threshold = Annotated[str, matching(r"[0-9][0-9.]{0,15}( ?[A-Za-z%/]{1,20})?", "a size: '5%' or '0.1 s'")]
Recipe = Annotated[str, matching(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}", "a recipe's name")]


def _webhook_elsewhere(value: str) -> str:
    kind, _, target = value.partition(":")
    if kind == "webhook":
        foreign_webhook_url(target)
    return value


_Notice = Annotated[
    str,
    matching(
        r"(mail|webhook):[!-~]{1,1000}",
        "mail:me@example.org or webhook:https://HOST/PATH; a command runs only where it is given",
    ),
    AfterValidator(_webhook_elsewhere),
]
_MOST_NOTICES = 10
"""Addresses that one request may notify: chosen, so that nobody sends mass mail through a lab."""


class RemoteRequest(Spec):
    """A request from elsewhere; its fields mean the same as the options of `perfbisect start`."""

    repo: Name | None = Field(default=None, description="a repository's name; null: the server's only one")
    good: Rev
    bad: Rev
    workload: WorkloadName
    find: Find = "regression"
    param: dict[Name, Annotated[tuple[_Value, ...], Field(max_length=_MOST)]] = Field(
        default_factory=dict, max_length=_MOST
    )
    metric: Annotated[str, matching(r"[A-Za-z0-9][A-Za-z0-9 ._:/-]{0,99}", "a metric's name")] | None = None
    threshold: Threshold | None = None
    alpha: Alpha | None = None
    recipe: Recipe | None = None
    testbeds: Annotated[tuple[Name, ...], Field(max_length=_MOST)] = ()
    skip: Annotated[tuple[_Skipped, ...], Field(max_length=_MOST)] = ()
    first_parent: bool = False
    with_fix: Annotated[tuple[_Fix, ...], Field(max_length=_MOST)] = ()
    max_hours: Hours | None = None
    max_builds: Amount | None = None
    max_runs: Amount | None = None
    scan: bool = False
    build_ahead: BuildsAhead = 0
    monitors: Annotated[tuple[_Monitor, ...], Field(max_length=_MOST)] = ()
    priority: int | None = Field(default=None, ge=FIRST_PRIORITY, le=LAST_PRIORITY)
    paths: Annotated[tuple[_Subpath, ...], Field(max_length=_MOST)] = ()
    notify: Annotated[tuple[_Notice, ...], Field(max_length=_MOST_NOTICES)] = Field(
        default=(), description="who is told of the end: mail:ADDRESS or webhook:URL"
    )

    def resolve(self, web: WebSettings, shipped: Sequence[str], lab: Sequence[str]) -> dict[str, Any]:
        """Return the values of a `Request`, with what the server lists under these names.

        shipped: the names of its workloads; lab: of its testbeds. Raises RequestError for any other name.
        """
        out = {"repo", "workload", "testbeds", "priority", "notify"}
        given = self.model_dump(exclude_none=True, exclude=out)
        return {**given, **listed(web, shipped, lab, self.repo, self.workload, self.testbeds)}


def listed(
    web: WebSettings,
    shipped: Sequence[str],
    lab: Sequence[str],
    repo: str | None,
    workload: str,
    testbeds: Sequence[str],
) -> dict[str, Any]:
    """Return 'repo', 'workload' and 'testbeds' as the server lists them under the names of a request.

    Raises RequestError for any other name.
    """
    known = {name: name for name in web.testbeds or lab}
    repositories = {name: str(path) for name, path in web.repositories.items()}
    repo = repo or (next(iter(repositories)) if len(repositories) == 1 else "")
    return {
        "repo": _listed("repository", repo, repositories),
        "workload": _listed("workload", workload, listed_workloads(web, shipped)),
        "testbeds": tuple(_listed("testbed", name, known) for name in testbeds) or tuple(web.testbeds[:1]),
    }


def listed_workloads(web: WebSettings, shipped: Sequence[str]) -> dict[str, str]:
    """Return name -> shipped name or path of the workloads that a request to the server may name."""
    named = web.workloads or shipped
    return {one if one in shipped else Path(one).name: one for one in named}


def _listed(kind: str, name: str, known: Mapping[str, str]) -> str:
    if name not in known:
        raise RequestError(
            f"the server lists no {kind} '{name}'{nearest(name, known)}" if name else f"no {kind} is named",
            details=f"it lists: {', '.join(known) or 'none'}",
            cure=f"name one of those; its administrator lists each {kind} below [web] in perfbisect.toml",
        )
    return known[name]


def require_listed(web: WebSettings | None, testbed: str) -> None:
    """Raise RequestError where the server lists testbeds, and not this one."""
    if web is not None and web.testbeds:
        _listed("testbed", testbed, {name: name for name in web.testbeds})


def remote_request(request: Request) -> dict[str, Any]:
    """Return what to send for a request of the command line, whose `repo` is a name, or ''.

    Raises RequestError for what cannot be asked of a server.
    """
    given = {name for name in request.model_fields_set if getattr(request, name) != _default(name)}
    refused = sorted(given - RemoteRequest.model_fields.keys() - {"repo"})
    if refused:
        raise RequestError(
            f"{option_name(refused[0])} cannot be asked of a server",
            cure="leave it out, or give the command on the server's machine",
        )
    values = request.model_dump(mode="json", include=given)
    return {**values, "repo": request.repo or None, "workload": request.workload}


def listed_request(request: Request, repo: str, web: WebSettings, shipped: Sequence[str]) -> Request:
    """Return a request from elsewhere with what the server lists in place of what it names.

    repo: the name of a repository; shipped: the names of its workloads. Raises RequestError: it cannot be.
    """
    given = remote_request(request.model_copy(update={"repo": repo, "testbeds": ()}))
    try:
        asked = RemoteRequest.model_validate({**given, "workload": workload_name(request.workload)})
        return Request.model_validate(asked.resolve(web, shipped, ()))
    except ValidationError as error:
        problems = describe_problems(error)
        cure = "give the command on the server's machine"
        raise RequestError("the request is none that a server takes", details=problems, cure=cure) from error


def _default(name: str) -> object:
    return Request.model_fields[name].get_default(call_default_factory=True)
