"""`perfbisect kernel`: building one commit by hand, and why a kernel is configured as it is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from bisector.interfaces.cli import asking, output
from bisector.interfaces.report.words import duration

Layout = Annotated[int, typer.Option(help="0: the ordinary build; above: the same code placed differently.")]
Rev = Annotated[str, typer.Argument(metavar="REV", help="A commit of the repository.")]


def register(app: typer.Typer) -> None:
    """Add the group to the application."""
    group = typer.Typer(help="Kernels: build one, explain its configuration.", rich_markup_mode=None)
    group.command()(build)
    group.command()(explain)
    app.add_typer(group, name="kernel")


def build(
    rev: Rev,
    repo: asking.Repo = None,
    recipe: asking.RecipeName = None,
    layout: Layout = 0,
    apply: asking.Apply = None,
    as_json: asking.Json = False,
) -> None:
    """Build one commit as a bisection would, or take it from the cache.

    Examples:

      perfbisect kernel build v6.1 --repo ~/linux

      perfbisect kernel build HEAD --apply fix.patch --json
    """
    from bisector.interfaces.cli import services

    settings = asking.settings(repo=repo)
    kernel = services.build(
        settings, rev, recipe or settings.recipe, layout, asking.patches(apply), progress=_progress()
    )
    data = _data(kernel)
    if as_json:
        output.facts(data)
        return
    print(
        output.pairs(
            {
                "commit": kernel.sha,
                "release": kernel.release,
                "took": "nothing, it was in the cache" if kernel.cached else duration(kernel.seconds),
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


def explain(
    rev: Annotated[
        str | None, typer.Argument(metavar="[REV]", help="Also say what this commit was granted.")
    ] = None,
    repo: asking.Repo = None,
    recipe: asking.RecipeName = None,
    as_json: asking.Json = False,
) -> None:
    """Say what a recipe asks of a kernel and why, option by option.

    Examples:

      perfbisect kernel explain

      perfbisect kernel explain rt-16 --repo ~/linux
    """
    from bisector.spec.recipe import load_recipe

    settings = asking.settings(repo=repo)
    loaded = load_recipe(recipe or settings.recipe)
    granted: dict[str, str] | None = None
    if rev is not None:
        from bisector.interfaces.cli import services

        kernel = services.cached_kernel(settings, rev, loaded.name)
        if kernel is None:
            output.note(
                f"{rev} is not built yet; 'perfbisect kernel build {rev}' does, and tells what it is granted"
            )
        else:
            granted = dict(kernel.options)
    rows = [
        {
            "option": option.line,
            "status": option.status,
            "fragment": option.fragment,
            "why": option.why,
            "granted": option.granted(granted) if granted is not None else None,
        }
        for option in loaded.options
    ]
    if as_json:
        output.facts({"recipe": loaded.name, **loaded.manifest.model_dump(mode="json"), "options": rows})
        return
    print(output.strong(loaded.name) + f": {loaded.manifest.summary}")
    manifest = loaded.manifest
    print(f"starts from {manifest.base}, compiled by {manifest.toolchain} for {manifest.arch}")
    reason = None
    for row in rows:
        if row["why"] and row["why"] != reason:
            print(f"\n  # {row['why']}")
        reason = row["why"]
        said = (
            "" if row["granted"] is None else "  granted" if row["granted"] else output.bad("  NOT GRANTED")
        )
        print(f"  {row['option']}  ({row['status']}, {row['fragment']}){said}")


def _progress() -> Any:  # noqa: ANN401 - ports.Progress
    """Return a callback that shows the current step on a terminal, and nothing elsewhere."""
    if not output.coloured(sys.stderr):
        return lambda text: None

    def tell(text: str) -> None:
        print(f"\r\x1b[K{text[:100]}", end="", file=sys.stderr, flush=True)

    return tell


def _data(kernel: Any) -> dict[str, Any]:  # noqa: ANN401 - ports.Kernel, which interfaces may not import
    import dataclasses

    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in dataclasses.asdict(kernel).items()
    }
