"""The text and data of `perfbisect kernel explain`: the rows of kernels/ that cover a commit, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bisector.interfaces.cli import output
from bisector.schemas.kernel.build_plan import BuildPlan
from bisector.schemas.kernel.recipe import Recipe


def options_of(
    recipe: Recipe, plan: BuildPlan | None, granted: Mapping[str, str] | None
) -> list[dict[str, Any]]:
    """Return one row an option. plan: of a commit; granted: its effective configuration, if built."""
    rows = []
    asked = plan.options if plan is not None else ()
    for number, option in enumerate(recipe.options):
        one = asked[number] if asked else None
        rows.append(
            {
                "option": option.line,
                "status": option.status,
                "fragment": option.fragment,
                "why": option.why,
                "names": list(one.at_release.names) if one else [option.name],
                "expected": one.at_release.expected if one else True,
                "granted": one.granted(granted) if one and granted is not None else None,
            }
        )
    return rows


def options_text(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Return the options as lines, the reason above those that share it."""
    reason = None
    for row in rows:
        if row["why"] and row["why"] != reason:
            yield f"\n  # {row['why']}"
        reason = row["why"]
        note = ""
        if row["granted"] is not None:
            note = "  granted" if row["granted"] else output.bad("  NOT GRANTED")
            if not row["granted"] and not row["expected"]:
                note = "  not there at this age"
        elif not row["expected"]:
            note = "  may be missing at this age"
        older = row["names"][1:]
        names = f"  (once {', '.join(older)})" if older else ""
        yield f"  {row['option']}  ({row['status']}, {row['fragment']}){names}{note}"


def plan_data(plan: BuildPlan, edited: Mapping[str, bool]) -> dict[str, Any]:
    """Return what decides how one commit is built. edited: fixup -> whether it changes anything there."""
    toolchain = plan.toolchain
    return {
        "age": str(plan.release),
        "recipe": plan.recipe.name,
        "arch": plan.recipe.manifest.arch,
        "userspace": plan.recipe.manifest.userspace,
        "toolchain": {
            "name": toolchain.name,
            "range": toolchain.range,
            "compiler": toolchain.compiler,
            "origin": toolchain.origin,
            "driver": toolchain.driver,
            "pretends": toolchain.pretend,
            "why": toolchain.why,
        },
        "fixups": [
            {"name": row.name, "range": row.range, "edits": edited.get(row.name, False), "why": row.why}
            for row in plan.fixups
        ],
        "steps": steps(plan),
    }


def plan_text(data: Mapping[str, Any]) -> Iterator[str]:
    """Return the lines of `plan_data` for people."""
    toolchain = data["toolchain"]
    source = f", {toolchain['origin']}" if toolchain["origin"] else ""
    source += f", which says it is gcc {toolchain['pretends']}" if toolchain["pretends"] else ""
    yield f"age        {data['age']}, by the Makefile of its tree"
    yield f"toolchain  {toolchain['name']} ({toolchain['range']}): {toolchain['compiler']}{source}"
    if toolchain["why"]:
        yield f"           because {toolchain['why']}"
    yield f"userspace  {data['userspace']}"
    yield f"fixups     {len(data['fixups']) or 'none'}"
    for row in data["fixups"]:
        does = "edits" if row["edits"] else "finds nothing to edit"
        yield f"  {row['name']} ({row['range']}) {does}\n    {row['why']}"
    yield "steps"
    for step in data["steps"]:
        yield f"  {step}"


def steps(plan: BuildPlan) -> list[str]:
    """Return the commands that a builder runs, in its own folders."""
    toolchain, manifest = plan.toolchain, plan.recipe.manifest
    arch = manifest.arch
    call = f"make O=out ARCH={arch}"
    call += f" CROSS_COMPILE={toolchain.cross}" if toolchain.cross else ""
    shimmed = " CC=<shim>" if toolchain.shimmed else ""
    shimmed += " HOSTCC=<shim>" if toolchain.host_shim() else ""
    target = manifest.image[0].rsplit("/", 1)[-1]
    tuxmake = f"tuxmake --target-arch {arch} --toolchain {toolchain.compiler} --wrapper ccache"
    base = [f"{call} {manifest.base}"] if not plan.recipe.base and manifest.base != "allnoconfig" else []
    if manifest.rest == "off":
        configure = f"{call}{shimmed} KCONFIG_ALLCONFIG=<base and fragments> allnoconfig"
    else:
        configure = f"{call}{shimmed} olddefconfig, of base and fragments (oldconfig before v3.7)"
    return [
        *base,
        configure,
        f"{tuxmake} --make-target {target} config"
        if toolchain.driver == "tuxmake"
        else f"{call}{shimmed} {target}",
        f"{call} modules modules_install, if the configuration has modules",
    ]
