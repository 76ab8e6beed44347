"""Options that commands share, and the way from the options of `start` and `plan` to a request."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic import ValidationError

from bisector.errors import RequestError
from bisector.interfaces.cli import output
from bisector.interfaces.cli.arguments import completion, ends, kernel_lists, number_options, path_limits
from bisector.schemas.documents.document import expand_user, is_file, why_no_file
from bisector.schemas.ranges import kind_and_limits
from bisector.schemas.refusal import refusal
from bisector.schemas.request import Request, option_name

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.schemas.settings import Settings


@dataclass
class GlobalOptions:
    """The options that come before the command."""

    config: Path | None = None
    debug: bool = False
    server: str | None = None


_global_options = GlobalOptions()


def global_options() -> GlobalOptions:
    """Return the options that came before the command."""
    return _global_options


def set_global_options(config: Path | None = None, *, debug: bool = False, server: str | None = None) -> None:
    """Set those of this command line."""
    _global_options.config, _global_options.debug, _global_options.server = config, debug, server


def _option(name: str) -> Any:  # noqa: ANN401 - what Typer takes
    """Return the option for a field of a request."""
    field = Request.model_fields[name]
    kind, limits = kind_and_limits(field)
    if kind is not None:
        allowed = number_options.range_of(kind, limits)
        return number_options.option(allowed, str(field.description), option_name(name))
    return typer.Option(
        option_name(name),
        metavar=_extra(name).get("metavar"),
        help=field.description,
        show_default=False,
        autocompletion=completion.OF_FIELDS.get(name),
    )


def _extra(name: str) -> Mapping[str, Any]:
    """Return the properties of an option that its field of the request defines."""
    extra = Request.model_fields[name].json_schema_extra
    return extra if isinstance(extra, Mapping) else {}


# Options of a request that other commands share.
WorkloadFolder = Annotated[
    Path | None, typer.Option("--workloads", help="Folder of workloads. [default: the shipped ones]")
]
Repo = Annotated[Path | None, _option("repo")]
TrustRepo = Annotated[bool, _option("trust_repo")]
WorkloadName = Annotated[str | None, _option("workload")]
RecipeName = Annotated[str | None, _option("recipe")]
Params = Annotated[list[str] | None, _option("param")]
Metric = Annotated[str | None, _option("metric")]
Apply = Annotated[list[Path] | None, _option("apply")]
WithFix = Annotated[list[str] | None, _option("with_fix")]
Monitors = Annotated[list[str] | None, _option("monitors")]
MaxHours = Annotated[float | None, _option("max_hours")]

Lab = Annotated[Path | None, typer.Option(help="An Ansible inventory. [default: one guest on this machine]")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write one self-contained HTML page to this file."),
]

Testbed = Annotated[str | None, completion.testbed_option("A testbed of the lab. [default: the first]")]
Commit = Annotated[str, completion.commit_argument("A commit of the repository.")]
WorkloadArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Its name, or the path of a folder with a workload.yaml.",
        autocompletion=completion.workloads,
    ),
]
Id = Annotated[
    str | None,
    typer.Argument(
        help="A bisection's id, or its beginning. [default: the latest]", autocompletion=completion.bisections
    ),
]

RequestCommand = Callable[..., None]
"""A command that is called with the wiring, the request, and its own options."""


def takes_request(command: RequestCommand) -> RequestCommand:
    """Give a command an option for each field of `Request`; call it with wiring and request instead.

    The command's own options, all but its first two parameters, follow behind. The wrapped command raises
    RequestError for what is missing or wrong.
    """
    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in list(inspect.signature(command, eval_str=True).parameters.values())[2:]
    ]
    parameters = [*_request_parameters(), *own]

    @functools.wraps(command)
    def wrapper(**values: Any) -> None:  # noqa: ANN401 - what Typer read
        rest = {parameter.name: values.pop(parameter.name) for parameter in own}
        lab, repo = values.pop("lab"), values.pop("repo")
        wiring = make_wiring(lab=lab, repo=repo, trust_repo=values["trust_repo"], remote=True)
        if wiring.settings.server is not None:
            refuse_lab(lab)
            values["workload"] = values["workload"] or wiring.settings.workload
        command(wiring, _request(wiring.settings, values, repo), **rest)

    del wrapper.__wrapped__  # Typer would read the signature of what is wrapped
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper


def _request_parameters() -> Iterator[inspect.Parameter]:
    """Yield a parameter for each field of a request, and one for the inventory behind the testbeds."""
    for name, field in Request.model_fields.items():
        kind = _extra(name).get("type")
        if kind == "argument":
            metavar = _extra(name).get("metavar")
            argument = typer.Argument(metavar=metavar, help=field.description, show_default=False)
            yield _parameter(name, list[str] | None, argument, None)
            continue
        default = False if field.annotation is bool else None
        option_type = _option_type(field.annotation, is_path=kind == "path")
        yield _parameter(name, option_type, _option(name), default)
        if name == "bad":
            yield from (_parameter(age, str | None, option, None) for age, option in ends.by_age().items())
        if name == "testbeds":
            yield inspect.Parameter("lab", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Lab)


def _parameter(name: str, kind: Any, info: Any, default: object) -> inspect.Parameter:  # noqa: ANN401 - types
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
    )


def _option_type(annotation: Any, *, is_path: bool) -> Any:  # noqa: ANN401 - types
    """Return the type that Typer parses for a field's type; None stands for what is not given."""
    if annotation is bool:
        return bool
    if getattr(annotation, "__origin__", None) in (tuple, dict):
        return list[Path] | None if is_path else list[str] | None
    if get_origin(annotation) is Literal:
        return annotation | None
    plain = next((kind for kind in get_args(annotation) if kind is not type(None)), annotation)
    plain = plain.__origin__ if get_origin(plain) is Annotated else plain
    return (Path if is_path else plain) | None


def make_wiring(
    *,
    lab: Path | None = None,
    repo: Path | None = None,
    trust_repo: bool = False,
    remote: bool = False,
    why_here: str = "",
) -> Wiring:
    """Return the wiring of this command line's settings: file, then environment, then options.

    remote: whether the command works at a server, too; why_here: why not, where one may wonder. Raises
    RequestError: it does not, and one is set.
    """
    from bisector.app.wiring import Wiring
    from bisector.schemas.settings import load_settings

    given = {"lab": lab, "repo": repo, "server": global_options().server}
    settings = load_settings(global_options().config, given)
    if not remote:
        refuse_server(settings, why_here)
    wiring = Wiring(settings, output.print_note)
    if trust_repo and settings.server is None:  # a server's repositories are its own to trust
        wiring.trust(wiring.repo)
    return wiring


def refuse_server(settings: Settings, why: str = "") -> None:
    """Raise RequestError where a server is set, for a command that only works on its own machine."""
    if settings.server is not None:
        raise RequestError(
            f"this command works on its own machine, not at the server {settings.server}",
            details=why,
            cure="give it there; or here without --server, PERFBISECT_SERVER and 'server' in the settings",
        )


def refuse_lab(lab: Path | None) -> None:
    """Raise RequestError where an inventory was named to a server."""
    if lab is not None:
        raise RequestError("--lab cannot be asked of a server", cure="leave it out: it has its own")


def _request(settings: Settings, values: Mapping[str, Any], repo: Path | None) -> Request:
    """Return the request, with defaults from the settings. Raises RequestError if something is missing.

    repo: as it was said; at a server it is a name, '' for none.
    """
    values = ends.with_names(values)
    given = {name: value for name, value in values.items() if value is not None} | {
        "repo": str((settings.repo or Path.cwd()).expanduser().absolute()),
        "alpha": settings.alpha if values["alpha"] is None else values["alpha"],
        "workload": _workload_or_command(settings, values),
        "param": parameters(values["param"]),
        "apply": tuple(map(str, patches(values["apply"]))),
        "priors": str(expand_user(values["priors"]).absolute()) if values["priors"] else "",
        "recipe": values["recipe"] or settings.recipe,
        **kernel_lists.instead_of_commits(values, repo),
    }
    if settings.server is not None:
        given |= {"repo": str(repo or ""), "workload": str(values["workload"] or "")}
    elif values["paths"]:
        given["paths"] = path_limits.from_top(values["paths"], Path(given["repo"]))
    try:
        return Request.model_validate(given)
    except ValidationError as error:
        raise refusal(
            error, Request, label=lambda key: option_name(key[0]), described_in="'perfbisect start --help'"
        ) from error


def parameters(texts: Sequence[str] | None) -> dict[str, tuple[str, ...]]:
    """Return the values of --param; a name that is given again has several. Raises RequestError."""
    found: dict[str, tuple[str, ...]] = {}
    for text in texts or ():
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
        if not is_file(patch):
            raise RequestError(
                f"--apply {patch}: {why_no_file(patch)}", cure="name a patch file, as git diff writes it"
            )
    return found


def _workload_or_command(settings: Settings, values: Mapping[str, Any]) -> str:
    """Return the workload, '' where a command is run instead. Raises RequestError for both, or neither."""
    if not values["run"]:
        try:
            return workload_name(settings, values["workload"])
        except RequestError as error:
            raise RequestError(error.message, cure=f"{error.cure}, or give a command with --run") from error
    if values["workload"]:
        raise RequestError("--run and --workload exclude each other", cure="give one of them")
    if not values["run"].strip():
        raise RequestError("--run is empty", cure="write a command: --run 'perf bench sched pipe'")
    return ""


def workload_name(settings: Settings, name_or_path: str | None) -> str:
    """Return the workload to use; a folder as an absolute path, for a resumed bisection starts elsewhere.

    Raises RequestError where neither the command line nor the settings name one.
    """
    name = name_or_path or settings.workload
    if not name:
        raise RequestError(
            "--workload is missing", cure="'perfbisect workload list' shows what can be measured; name one"
        )
    path = Path(name).expanduser()
    is_path = name.startswith(("/", ".", "~")) or name.endswith(".yaml")
    return str(path.absolute()) if is_path or (path / "workload.yaml").is_file() else name
