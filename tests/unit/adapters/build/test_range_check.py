"""Whether a range can be built: which shipped rows cover it, what changes inside, what builders lack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from bisector.adapters.build.builder import KernelBuilder
from bisector.adapters.build.range_check import check_range
from bisector.errors import InfrastructureError
from bisector.schemas.kernel.build_plan import Tables
from bisector.schemas.kernel.recipe import load_recipe
from bisector.schemas.kernel.release import Release
from bisector.schemas.kernel.toolchain import Toolchain

TABLES = Tables.load()


class Builder:
    """A builder that has every compiler, or none."""

    def __init__(self, host: str, missing: str = "") -> None:
        self.host, self.missing = host, missing

    def probe(self, toolchain: Toolchain, progress: object) -> SimpleNamespace:
        if self.missing:
            raise InfrastructureError(self.missing, cure="install it")
        return SimpleNamespace(toolchain=f"{toolchain.compiler} 12.2", cpus=2)


def checked(
    recipe: str,
    good: str,
    bad: str,
    builders: Sequence[Builder] = (Builder("here"),),
    tables: Tables = TABLES,
) -> dict[str, Any]:
    ends = Release.parse(good), Release.parse(bad)
    return check_range(load_recipe(recipe), tables, *ends, cast("Sequence[KernelBuilder]", builders))


def test_a_range_that_one_row_covers_can_be_built() -> None:
    found = checked("x86_64-old", "v2.6.18", "v2.6.30")
    assert not found["broken"]
    assert found["warnings"] == []
    assert (found["good"], found["bad"]) == ("v2.6.18", "v2.6.30")
    (toolchain,) = found["toolchains"]
    assert "gcc-12" in toolchain
    assert found["builders"] == ["here: gcc-12 12.2, 2 CPUs"]


def test_rows_that_begin_or_end_inside_are_said_to() -> None:
    fixups = {text.split(" ")[0]: text for text in checked("x86_64-old", "v2.6.18", "v2.6.30")["fixups"]}
    assert fixups["make-mixed-rules"].endswith(", ends inside")  # before v2.6.29
    assert fixups["noinline-used"].endswith("v4.11)")  # the whole range
    assert "make-mixed-rules" not in " ".join(checked("x86_64-old", "v2.6.29", "v2.6.30")["fixups"])


def test_the_ends_may_come_in_either_order() -> None:
    there, back = checked("x86_64-old", "v2.6.18", "v2.6.30"), checked("x86_64-old", "v2.6.30", "v2.6.18")
    assert {**there, "good": "", "bad": ""} == {**back, "good": "", "bad": ""}


def test_an_end_that_no_compiler_builds_breaks_the_range() -> None:
    found = checked("x86_64-old", "v2.6.30", "v4.19")
    assert found["broken"]
    assert any("is known to work" in text and "not for v4.19" in text for text in found["warnings"])
    assert any("the end at v4.19" in text for text in found["warnings"]), "why it cannot start"


def test_a_compiler_that_is_told_more_in_older_trees_is_no_other_compiler() -> None:
    found = checked("x86_64-small", "v4.8", "v4.14")
    assert not found["broken"]
    assert found["warnings"] == [
        "the compiler is called with other flags inside the range, which may be a change of performance"
        " (v4.4 up to, not including, v4.9: these trees do not say -fno-PIE themselves; "
        "4.6.2 became the same image either way)"
    ]
    for one_row in (("v4.4", "v4.8"), ("v4.9", "v4.14")):
        assert checked("x86_64-small", *one_row)["warnings"] == []


def test_a_compiler_that_changes_inside_is_a_change_of_performance() -> None:
    changing = [
        Toolchain(name="gcc", compiler="gcc-9", before="v6.1"),
        Toolchain(name="gcc", compiler="gcc-12", since="v6.1"),
        Toolchain(name="gcc-12-only", compiler="gcc-12"),
    ]
    tables = replace(TABLES, toolchains=TABLES.toolchains.model_copy(update={"toolchain": changing}))
    warnings = checked("x86_64-guest", "v5.10", "v6.2", tables=tables)["warnings"]
    said = "the compiler changes inside the range, which is itself a change of performance"
    assert warnings == [f"{said}; 'gcc-12-only' covers the whole range"]
    assert checked("x86_64-guest", "v5.10", "v5.15", tables=tables)["warnings"] == []


def test_a_builder_without_the_compiler_breaks_it_and_says_what_to_do() -> None:
    found = checked("x86_64-guest", "v6.1", "v6.2", [Builder("here"), Builder("far", "gcc is not installed")])
    assert found["broken"]
    assert found["builders"] == ["here: gcc 12.2, 2 CPUs", "far: gcc is not installed (install it)"]


def test_options_are_named_only_where_they_change_inside() -> None:
    """Kernels that differ by more than their commits are compared: the user must know by what."""
    assert checked("x86_64-guest", "v6.1", "v6.2")["options"] == []
    changed = checked("x86_64-old", "v2.6.18", "v2.6.30")["options"]
    assert "PROC_SYSCTL is called SYSCTL before v2.6.19-rc1" in changed
    assert "RD_GZIP comes (since v2.6.30-rc1)" in changed
    assert "BLK_DEV_IDE goes (before v2.6.28-rc1)" in changed
    for inside in (("v2.6.17", "v2.6.18"), ("v2.6.29", "v2.6.30")):
        assert not [text for text in checked("x86_64-old", *inside)["options"] if "is called" in text]
