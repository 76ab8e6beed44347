"""`perfbisect kernel`: build one commit, explain how it is built, and manage the cache of kernels."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bisector.errors import ExitCode, RequestError
from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.arguments import completion
from bisector.interfaces.cli.arguments.number_options import real, whole
from bisector.model.commit_graph import short_name
from bisector.report.phrases import duration

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.ports import BuildOrder

Layout = Annotated[
    int, whole(0, 1_000_000, "0: the ordinary build; above: the same code placed differently.")
]


def build(
    rev: options.Commit,
    repo: options.Repo = None,
    trust_repo: options.TrustRepo = False,
    recipe: options.RecipeName = None,
    layout: Layout = 0,
    apply: options.Apply = None,
    with_fix: options.WithFix = None,
    print_plan: Annotated[
        bool, typer.Option("--print-plan", help="Only show how it would be built.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Build one commit as a bisection would, or take it from the cache.

    Examples:

      perfbisect kernel build v6.1 --repo ~/linux

      perfbisect kernel build HEAD --apply fix.patch --json
    """
    from bisector.app import kernels

    wiring = options.make_wiring(repo=repo, trust_repo=trust_repo)
    order = kernels.order(
        wiring,
        rev,
        recipe or wiring.settings.recipe,
        layout=layout,
        patches=options.patches(apply),
        with_fix=with_fix or (),
    )
    if print_plan:
        _print_plan(wiring, order, as_json=as_json)
        return
    with output.status_line() as show:
        kernel = kernels.build(
            wiring,
            order,
            show,
            lambda fix, needed: output.print_note(
                f"{short_name(order.sha)} {'needs' if needed else 'does not need'} the fix "
                f"{short_name(fix.sha)}"
            ),
        )
    data = _data(kernel)
    cached = "it came from the artefact store" if kernel.fetched else "it was in the cache"
    if as_json:
        output.print_json(data)
        return
    print(
        output.pairs(
            {
                "commit": kernel.sha,
                "recipe": kernel.recipe,
                "release": kernel.release,
                "took": f"nothing, {cached}" if kernel.cached else duration(kernel.seconds),
                "image": str(kernel.image),
                "config": str(kernel.config),
                "log": str(kernel.log),
                "toolchain": kernel.toolchain,
                "sizes": ", ".join(f"{name} {size}" for name, size in kernel.sizes.items()),
                "not granted": ", ".join(f"CONFIG_{n}" for n in kernel.lost)
                or "nothing that the recipe asks for",
            }
        )
    )


def _print_plan(wiring: Wiring, order: BuildOrder, *, as_json: bool) -> None:
    """Print how a kernel would be built."""
    from bisector.app import kernels
    from bisector.interfaces.cli.groups import kernel_explain

    plan, edited = kernels.kernel_plan(wiring, order)
    data = kernel_explain.plan_data(plan, edited)
    if as_json:
        output.print_json(data)
    else:
        print("\n".join((f"recipe     {data['recipe']}", *kernel_explain.plan_text(data))))


def explain(
    rev: Annotated[
        str | None,
        completion.commit_argument("Also show how this commit is built, and which options it was granted."),
    ] = None,
    repo: options.Repo = None,
    trust_repo: options.TrustRepo = False,
    recipe: options.RecipeName = None,
    as_json: options.Json = False,
) -> None:
    """Show the options of a recipe with their reasons; with a commit, also the rows of the tables for it.

    Examples:

      perfbisect kernel explain

      perfbisect kernel explain v2.6.24 --repo ~/linux
    """
    from bisector.app import kernels
    from bisector.interfaces.cli.groups import kernel_explain
    from bisector.schemas.kernel.recipe import load_recipe, with_default_recipe

    wiring = options.make_wiring(repo=repo, trust_repo=trust_repo)
    name = recipe or wiring.settings.recipe
    plan, data, granted = None, {}, None
    if rev is not None:
        order = kernels.order(wiring, rev, name)
        plan, edited = kernels.kernel_plan(wiring, order)
        data = kernel_explain.plan_data(plan, edited)
        kernel = wiring.builder().cached(dataclasses.replace(order, recipe=plan.recipe.name))
        if kernel is None:
            output.print_note(
                f"{rev} is not built yet; 'perfbisect kernel build {rev}' does, and tells what it is granted"
            )
        else:
            granted = dict(kernel.options)
    loaded = plan.recipe if plan is not None else load_recipe(with_default_recipe(name))
    rows = kernel_explain.options_of(loaded, plan, granted)
    manifest = loaded.manifest
    if as_json:
        output.print_json(
            {"recipe": loaded.name, **manifest.model_dump(mode="json"), "plan": data, "options": rows}
        )
        return
    print(output.strong(loaded.name) + f": {manifest.summary}")
    print(f"starts from {manifest.base}, compiled by {manifest.toolchain} for {manifest.arch}")
    for line in kernel_explain.plan_text(data) if data else ():
        print(line)
    for line in kernel_explain.options_text(rows):
        print(line)


def check(
    between: Annotated[
        str,
        typer.Argument(metavar="A..B", help="Two commits, as for git log.", autocompletion=completion.ranges),
    ],
    repo: options.Repo = None,
    trust_repo: options.TrustRepo = False,
    recipe: options.RecipeName = None,
    install: Annotated[
        bool, typer.Option("--install", help="Install the Debian packages that builders lack, as root there.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Check whether a range can be built: rows that cover it, changes inside it, what builders lack.

    Examples:

      perfbisect kernel check v2.6.18..v2.6.30 --repo ~/linux

      perfbisect kernel check v6.1..v6.6 --recipe arm64-guest --install
    """
    from bisector.app import kernels

    good, dots, bad = between.partition("..")
    if not dots or not good or not bad or bad.startswith("."):
        raise RequestError(f"'{between}' is not a range", cure="write A..B, as in v2.6.18..v2.6.30")
    found = kernels.check_range(
        options.make_wiring(repo=repo, trust_repo=trust_repo), good, bad, recipe, install=install
    )
    if as_json:
        output.print_json(found)
    else:
        print(
            output.pairs(
                {
                    "range": f"{found['good']} .. {found['bad']}",
                    "recipe": f"{found['recipe']} ({found['covers']})",
                    "toolchain": "\n".join(found["toolchains"]),
                    "fixups": "\n".join(found["fixups"]) or "none",
                    "options": "\n".join(found["options"]) or "the same names all over the range",
                    "builders": "\n".join(found["builders"]),
                }
            )
        )
        for warning in found["warnings"]:
            print(output.doubtful(f"warning: {warning}"))
    if found["broken"]:
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


def list_(as_json: options.Json = False) -> None:
    """List the kernels of the cache, the most recently used first.

    Examples:

      perfbisect kernel list
    """
    found = options.make_wiring().kernel_cache.inventory()
    if as_json:
        output.print_json(found)
        return
    rows = [
        (
            kernel["key"][:12],
            short_name(kernel["sha"]) or "?",
            kernel["release"],
            kernel["recipe"] or "?",
            f"{kernel['bytes'] / 1e6:.1f} MB",
            duration(kernel["seconds"]),
        )
        for kernel in found["kernels"]
    ]
    header = ("KERNEL", "COMMIT", "RELEASE", "RECIPE", "SIZE", "TOOK")
    print(output.table(header, rows, dropped=["TOOK", "SIZE", "RECIPE"]))
    ccache = found["ccache"]
    asked = ccache["hits"] + ccache["misses"]
    share = (
        f", {ccache['hits'] / asked:.0%} of {asked:,} compilations came from the compiler cache"
        if asked
        else ""
    )
    print(f"{len(rows)} kernels, {found['bytes'] / 1e6:.0f} MB{share}")


def gc(
    keep: Annotated[
        float, real(0, 1_000_000, "Gigabytes of kernels to keep, the most recently used.")
    ] = 10.0,
    everything: Annotated[
        bool, typer.Option("--all", help="Keep only what unfinished bisections need.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Free disk space: remove the least recently used kernels, and logs of failed builds.

    What an unfinished bisection has built is never removed.

    Examples:

      perfbisect kernel gc --keep 5
    """
    from bisector.app import kernels

    freed, kept = kernels.collect_kernels(options.make_wiring(), 0 if everything else int(keep * 1e9))
    if as_json:
        output.print_json({"freed_bytes": freed, "kept_for_bisections": kept})
        return
    needed = f"; {kept} belong to unfinished bisections and stay" if kept else ""
    print(f"freed {freed / 1e6:.0f} MB{needed}")


def _data(kernel: Any) -> dict[str, Any]:  # noqa: ANN401 - ports.Kernel, which interfaces may not import
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in dataclasses.asdict(kernel).items()
    }
