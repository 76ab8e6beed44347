"""Whether a range of commits can be built: which rows cover it, what changes inside, what builders lack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bisector.adapters.build.builder import KernelBuilder
from bisector.errors import PerfbisectError, SourceFailed
from bisector.schemas.kernel.build_plan import Tables
from bisector.schemas.kernel.option_history import option_at_release
from bisector.schemas.kernel.recipe import Recipe
from bisector.schemas.kernel.release import Release, ReleaseRange
from bisector.schemas.kernel.toolchain import Toolchain, toolchain_for


def check_range(
    recipe: Recipe, tables: Tables, good: Release, bad: Release, builders: Sequence[KernelBuilder]
) -> dict[str, Any]:
    """Return what a user should know before a search, as JSON holds it. broken: it cannot start."""
    first, last = min(good, bad), max(good, bad)
    warnings: list[str] = []
    rows: list[Toolchain] = []
    for end in dict.fromkeys((first, last)):
        if not recipe.manifest.covers(end):
            known = f"is known to work {recipe.manifest.range}, not for {end}"
            warnings.append(f"the recipe '{recipe.name}' {known}")
        try:
            rows.append(toolchain_for(tables.toolchains, recipe.manifest.toolchain, end, f"the end at {end}"))
        except SourceFailed as error:
            warnings.append(error.message)
    broken = len(rows) < len({first, last})
    if len({row.identity for row in rows}) > 1:
        covering = [
            row.name
            for row in tables.toolchains.toolchain
            if row.covers(first) and row.covers(last) and row.name != recipe.manifest.toolchain
        ]
        offer = f"; '{covering[0]}' covers the whole range" if covering else ""
        warnings.append(
            f"the compiler changes inside the range, which is itself a change of performance{offer}"
        )
    elif len({row.shim() for row in rows}) > 1:
        reasons = "; ".join(f"{row.range}: {row.why}" for row in rows if row.shimmed and row.why)
        warnings.append(
            "the compiler is called with other flags inside the range, which may be a change of performance"
            + (f" ({reasons})" if reasons else "")
        )
    lacking, answers = _probe_builders(builders, rows)
    return {
        "good": str(good),
        "bad": str(bad),
        "recipe": recipe.name,
        "covers": recipe.manifest.range,
        "toolchains": list(dict.fromkeys(map(_describe_toolchain, rows))),
        "fixups": [
            f"{row.name} ({row.range}){_describe_change(row, first, last)}"
            for row in tables.fixups
            if _overlaps(row, first, last)
        ],
        "options": _list_changed_options(recipe, tables, first, last),
        "builders": answers,
        "warnings": warnings,
        "broken": broken or lacking,
    }


def _probe_builders(builders: Sequence[KernelBuilder], rows: Sequence[Toolchain]) -> tuple[bool, list[str]]:
    """Ask every builder whether it has what the rows need."""
    lacking, answers = False, []
    for builder in builders:
        reasons: dict[str, None] = {}
        for row in {row.identity: row for row in rows}.values():
            try:
                found = builder.probe(row, lambda _: None)
            except PerfbisectError as error:
                reasons[f"{error.message} ({error.cure})" if error.cure else error.message] = None
            else:
                answers.append(f"{builder.host}: {found.toolchain}, {found.cpus} CPUs")
        answers += [f"{builder.host}: {reason}" for reason in reasons]
        lacking = lacking or bool(reasons)
    return lacking, answers


def _describe_toolchain(row: Toolchain) -> str:
    """Return a row in words, with where its compiler comes from."""
    return f"{row.name} ({row.range}): {', '.join(filter(None, (row.compiler, row.origin)))}"


def _overlaps(row: ReleaseRange, first: Release, last: Release) -> bool:
    return row.start <= last and first < row.end


def _describe_change(row: ReleaseRange, first: Release, last: Release) -> str:
    return ", begins inside" * bool(row.since and first < row.start) + ", ends inside" * (last >= row.end)


def _list_changed_options(recipe: Recipe, tables: Tables, first: Release, last: Release) -> list[str]:
    """Return the options that come, go or change their name inside the range."""
    changes = []
    for option in recipe.options:
        before, after = (
            option_at_release(tables.options, option.name, end, recipe.manifest.arch) for end in (first, last)
        )
        if before.expected and not after.expected:
            changes.append(f"{option.name} goes (before {after.row.before})" if after.row else option.name)
        elif after.expected and not before.expected and after.row is not None:
            changes.append(f"{option.name} comes (since {after.row.since})")
        elif before.names != after.names and before.row is not None:
            changes.append(
                f"{option.name} is called {' or '.join(before.names[1:])} before {before.row.since}"
            )
    return changes
