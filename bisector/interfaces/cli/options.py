"""From command line options to a request: shared by `start` and `plan`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bisector.errors import RequestError
from bisector.interfaces.cli.application import global_options

if TYPE_CHECKING:
    from bisector.schemas.request import Request
    from bisector.schemas.settings import Settings

# The options of a request, as Typer reads them from signatures.
Repo = Annotated[
    Path | None, typer.Option(help="The kernel's git repository. [default: settings, else this folder's]")
]
Good = Annotated[str, typer.Option(help="A commit without the regression.", show_default=False)]
Bad = Annotated[str, typer.Option(help="A commit with it.", show_default=False)]
WorkloadName = Annotated[
    str | None, typer.Option("--workload", help="A name, or a folder with a workload.yaml.")
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param", metavar="NAME=VALUE", help="Set a parameter of the workload; a name again makes a list."
    ),
]
Metric = Annotated[str | None, typer.Option(help="Decide by this metric instead of the manifest's own.")]
Threshold = Annotated[
    str | None, typer.Option(help="Smallest change worth blaming: '5%' or '0.1 s'. [default: the manifest's]")
]
Alpha = Annotated[
    float | None, typer.Option(help="How often a proven culprit may be wrong. [default: settings, 0.05]")
]
RecipeName = Annotated[str | None, typer.Option("--recipe", help="How a commit becomes a kernel.")]
Testbeds = Annotated[
    list[str] | None,
    typer.Option("--testbed", help="A testbed of the lab; repeat for several. [default: first]"),
]
Lab = Annotated[Path | None, typer.Option(help="An Ansible inventory. [default: one guest on this machine]")]
Skip = Annotated[
    list[str] | None, typer.Option(help="A commit or range A..B that cannot be tested; repeatable.")
]
FirstParent = Annotated[bool, typer.Option("--first-parent", help="Follow only the first parent of merges.")]
Apply = Annotated[
    list[Path] | None, typer.Option(help="A patch put on top of every commit tested; repeatable.")
]
WithFix = Annotated[
    list[str] | None,
    typer.Option(
        help="A known fix, put where the commit that it mends is in and it is not: REV, or REV:GUILTY where "
        "its message has no 'Fixes:' line; repeatable."
    ),
]
MaxHours = Annotated[float | None, typer.Option(help="Stop after so many hours of lab time.")]
MaxBuilds = Annotated[int | None, typer.Option(help="Stop after so many builds.")]
MaxRuns = Annotated[int | None, typer.Option(help="Stop after so many runs.")]
Monitors = Annotated[
    list[str] | None,
    typer.Option(
        "--monitor",
        metavar="NAME[=A,B]",
        help="Watch with perf-stat, perf-record, ftrace, proc or dmesg, in runs of its own; repeatable.",
    ),
]
BuildAhead = Annotated[
    int, typer.Option(help="Build up to so many kernels before a trial asks, while the testbeds measure.")
]
Scan = Annotated[bool, typer.Option("--scan", help="Search even where the ends do not differ.")]
Paths = Annotated[
    list[str] | None,
    typer.Argument(help="After --: only commits that touch these paths.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Id = Annotated[str | None, typer.Argument(help="A bisection's id, or its beginning. [default: the latest]")]


def settings(*, lab: Path | None = None, repo: Path | None = None) -> Settings:
    """Return the settings of this command line: file, then environment, then options."""
    from bisector.schemas.settings import load_settings

    return load_settings(global_options().config, {"lab": lab, "repo": repo})


def request(
    settings: Settings,
    *,
    good: str,
    bad: str,
    workload: str | None,
    param: Sequence[str] | None,
    metric: str | None,
    threshold: str | None,
    alpha: float | None,
    recipe: str | None,
    testbeds: Sequence[str] | None,
    skip: Sequence[str] | None,
    first_parent: bool,
    apply: Sequence[Path] | None,
    with_fix: Sequence[str] | None,
    max_hours: float | None,
    max_builds: int | None,
    max_runs: int | None,
    scan: bool,
    build_ahead: int,
    monitors: Sequence[str] | None,
    paths: Sequence[str] | None,
) -> Request:
    """Return the request; settings fill in what is not said. Raises RequestError for what is missing."""
    from pydantic import ValidationError

    from bisector.schemas.request import Request

    for name, value in (("good", good), ("bad", bad)):
        if not value:
            raise RequestError(
                f"--{name} is missing",
                cure="name both ends: perfbisect start --good v6.1 --bad v6.2 --workload pipe-test",
            )
    repo = (settings.repo or Path.cwd()).expanduser().absolute()
    try:
        return Request(
            repo=str(repo),
            good=good,
            bad=bad,
            workload=workload_name(settings, workload),
            param=parameters(param),
            metric=metric,
            threshold=threshold,
            alpha=settings.alpha if alpha is None else alpha,
            recipe=recipe or settings.recipe,
            testbeds=tuple(testbeds or ()),
            skip=tuple(skip or ()),
            first_parent=first_parent,
            paths=tuple(paths or ()),
            apply=tuple(map(str, patches(apply))),
            with_fix=tuple(with_fix or ()),
            max_hours=max_hours,
            max_builds=max_builds,
            max_runs=max_runs,
            scan=scan,
            build_ahead=build_ahead,
            monitors=tuple(monitors or ()),
        )
    except ValidationError as error:
        first = error.errors()[0]
        option = "--" + str(first["loc"][0]).replace("_", "-")
        message = str(first["msg"]).removeprefix("Value error, ")
        raise RequestError(f"{option}: {message} (got {first.get('input')!r})") from error


def parameters(said: Sequence[str] | None) -> dict[str, tuple[str, ...]]:
    """Return what --param said; a name said several times has several values. Raises RequestError."""
    found: dict[str, tuple[str, ...]] = {}
    for text in said or ():
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise RequestError(
                f"--param '{text}' is no NAME=VALUE", cure="write --param threads=4; again for more values"
            )
        found[name] = (*found.get(name, ()), value)
    return found


def patches(apply: Sequence[Path] | None) -> tuple[Path, ...]:
    """Return the patch files as absolute paths. Raises RequestError for one that is not there."""
    found = tuple(Path(p).expanduser().absolute() for p in apply or ())
    for patch in found:
        if not patch.is_file():
            raise RequestError(f"--apply {patch}: no such file")
    return found


def workload_name(settings: Settings, said: str | None) -> str:
    """Return the workload to use; a folder as an absolute path, for a resumed bisection starts elsewhere.

    Raises RequestError where neither the command line nor the settings name one.
    """
    name = said or settings.workload
    if not name:
        raise RequestError(
            "--workload is missing", cure="'perfbisect workload list' shows what can be measured; name one"
        )
    path = Path(name).expanduser()
    is_path = name.startswith(("/", ".", "~")) or name.endswith(".yaml")
    return str(path.absolute()) if is_path or (path / "workload.yaml").is_file() else name
