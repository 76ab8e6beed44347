"""How a commit is built: options asked for and required, and the key of the cache of kernels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.schemas.kernel.base_config import RUNNING
from bisector.schemas.kernel.build_plan import BuildPlan, PlannedOption, Tables, make_plan, option_of_line
from bisector.schemas.kernel.option_history import OptionAtRelease
from bisector.schemas.kernel.recipe import Option, Recipe, RecipeManifest, Status, config_line
from bisector.schemas.kernel.release import Release
from bisector.schemas.kernel.toolchain import Archive, Toolchain

AGE = Release(6, 1)

TOOLCHAINS = """
[[toolchain]]
name = "gcc"
compiler = "gcc"
since = "v5.0"
"""

OPTIONS = """
[[option]]
name = "NEW"
since = "v5.0"
was = "OLD"
[[option]]
name = "LATE"
since = "v7.0"
"""


def option(name: str, value: str = "y", status: Status = "required") -> Option:
    return Option(name, value, status, "fragment", "why")


def recipe(*options: Option, **manifest: object) -> Recipe:
    data = {"summary": "s", "arch": "x86_64", "required": ["fragment"], "layouts": ["-O1"], **manifest}
    return Recipe("r", Path("r.toml"), RecipeManifest.model_validate(data), options)


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    (tmp_path / "toolchains.toml").write_text(TOOLCHAINS)
    (tmp_path / "options.toml").write_text(OPTIONS)
    return Tables.load(tmp_path)


def planned(
    name: str, names: tuple[str, ...], status: Status = "required", expected: bool = True
) -> PlannedOption:
    return PlannedOption(option(name, "y", status), OptionAtRelease(names, expected))


def test_an_option_is_granted_under_any_of_its_names() -> None:
    one = planned("NEW", ("NEW", "OLD"))
    assert one.lines == ("CONFIG_NEW=y", "CONFIG_OLD=y")
    assert one.granted({"OLD": "y"}) and one.granted({"NEW": "y", "OLD": "m"})
    assert not one.granted({"NEW": "m"}) and not one.granted({})


def test_an_option_that_must_be_off_is_granted_where_it_is_absent() -> None:
    off = PlannedOption(option("A", ""), OptionAtRelease(("A",), True))
    assert off.lines == ("# CONFIG_A is not set",)
    assert off.granted({}) and not off.granted({"A": "y"})


def test_only_expected_options_of_required_fragments_fail_a_build() -> None:
    assert planned("A", ("A",)).required
    assert not planned("A", ("A",), "wanted").required
    assert not planned("A", ("A",), expected=False).required


def test_the_configuration_has_every_name_and_the_requirements_their_alternatives(tables: Tables) -> None:
    plan = make_plan(recipe(option("NEW"), option("LATE"), option("X", "4", "wanted")), tables, AGE, "x")
    older = make_plan(plan.recipe, tables, Release(5, 0), "x")
    assert plan.config == "CONFIG_NEW=y\nCONFIG_LATE=y\nCONFIG_X=4\n"
    assert plan.required == "CONFIG_NEW=y\n", "LATE does not exist yet, X is wanted only"
    assert older.required == plan.required
    assert plan.not_granted({"NEW": "y"}) == ("X",)
    assert plan.not_granted({"NEW": "y", "X": "4"}) == ()


def test_between_two_names_both_are_asked_for() -> None:
    plan = BuildPlan(
        recipe(), AGE, Toolchain(name="gcc", compiler="gcc"), (), (planned("NEW", ("NEW", "OLD")),)
    )
    assert plan.config == "CONFIG_NEW=y\nCONFIG_OLD=y\n"
    assert plan.required == "CONFIG_NEW=y|CONFIG_OLD=y\n"


def test_the_digest_covers_what_can_change_a_kernel(tables: Tables) -> None:
    plan = make_plan(recipe(option("A")), tables, AGE, "x")
    gcc = plan.toolchain
    archive = [Archive(file="gcc.tar", sha256=digit * 64) for digit in "01"]
    others = [
        make_plan(recipe(option("A", "m")), tables, AGE, "x"),
        make_plan(recipe(option("A", "y", "wanted")), tables, AGE, "x"),
        make_plan(recipe(option("A"), base="defconfig"), tables, AGE, "x"),
        make_plan(recipe(option("A"), rest="default"), tables, AGE, "x"),
        make_plan(recipe(option("A"), arch="arm64"), tables, AGE, "x"),
        make_plan(recipe(option("A"), image=["vmlinux"]), tables, AGE, "x"),
        replace(plan, recipe=replace(plan.recipe, base="CONFIG_B=y\n")),
        *(
            replace(plan, toolchain=gcc.model_copy(update=change))
            for change in (
                {"compiler": "gcc-12"},
                {"driver": "make"},
                {"cross": "aarch64-linux-gnu-"},
                {"pretend": "4.4.7"},
                {"host_flags": ("-fcommon",)},
                {"archive": archive[0]},
                {"archive": archive[1]},
            )
        ),
    ]
    digests = [plan.digest(), plan.digest(1), *(one.digest() for one in others)]
    assert len(set(digests)) == len(digests)


def test_the_digest_covers_no_reason_no_name_and_no_place(tables: Tables) -> None:
    plan = make_plan(recipe(option("A")), tables, AGE, "x")
    same = [
        replace(plan, recipe=replace(plan.recipe, name="other", path=Path("other.toml"))),
        replace(plan, recipe=replace(plan.recipe, options=(replace(option("A"), why="another"),))),
        replace(plan, toolchain=plan.toolchain.model_copy(update={"why": "another", "package": "gcc"})),
        make_plan(plan.recipe, tables, Release(6, 2), "y"),
    ]
    assert {one.digest() for one in same} == {plan.digest()}
    bases = [
        replace(plan, recipe=replace(recipe(option("A"), base=b), base="CONFIG_B=y\n"))
        for b in (RUNNING, "x.config")
    ]
    assert bases[0].digest() == bases[1].digest(), "the content of a base counts, not where it was"


@given(st.from_regex(r"[A-Z0-9_]+", fullmatch=True), st.sampled_from(["y", "m", "", "42", '"a text"']))
def test_a_line_names_its_option(name: str, value: str) -> None:
    assert option_of_line(config_line(name, value)) == name
