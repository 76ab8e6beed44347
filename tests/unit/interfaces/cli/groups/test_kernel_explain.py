"""`perfbisect kernel explain` and `build --print-plan`: what is said of an option and of a commit's build."""

from __future__ import annotations

from bisector.interfaces.cli.groups.kernel_explain import (
    options_of,
    options_text,
    plan_data,
    plan_text,
    steps,
)
from bisector.schemas.kernel.build_plan import BuildPlan, load_plan
from bisector.schemas.kernel.recipe import DEFAULT_RECIPE
from bisector.schemas.kernel.release import Release


def plan(recipe: str = DEFAULT_RECIPE, release: Release = Release(6, 1)) -> BuildPlan:  # noqa: B008 - frozen
    return load_plan(recipe, release, "x")


def lines_of(
    release: Release, granted: dict[str, str] | None = None, recipe: str = DEFAULT_RECIPE
) -> dict[str, str]:
    """Return what is said of each option: name -> line."""
    made = plan(recipe, release)
    rows = options_of(made.recipe, made, granted)
    lines = list(options_text(rows))
    starts = {row["names"][0]: f"  {row['option']}  (" for row in rows}
    return {name: next(x for x in lines if x.startswith(start)) for name, start in starts.items()}


def test_every_option_has_one_line_and_its_reason_is_said_once() -> None:
    listed = options_of(plan().recipe, plan(), None)
    text = "\n".join(options_text(listed))
    assert all(f"  {row['option']}  ({row['status']}, {row['fragment']})" in text for row in listed)
    assert text.count(f"# {listed[0]['why']}") == 1


def test_what_a_built_kernel_was_granted_is_told_of_each_option() -> None:
    told = lines_of(Release(6, 1), {"VIRTIO_BLK": "y"})
    assert told["VIRTIO_BLK"].endswith("  granted")
    assert told["PREEMPT_RT"].endswith("  NOT GRANTED")


def test_an_option_that_came_later_is_not_called_refused() -> None:
    age, recipe = Release(2, 6, 18), "x86_64-old"
    made = plan(recipe, age)
    late = [one.option.name for one in made.options if not one.at_release.expected and one.option.value]
    assert late, "the shipped recipe asks for options that v2.6.18 does not have"
    unbuilt, built = lines_of(age, None, recipe), lines_of(age, {}, recipe)
    assert all(unbuilt[name].endswith("  may be missing at this age") for name in late)
    assert all(built[name].endswith("  not there at this age") for name in late)


def test_a_recipe_alone_says_nothing_of_a_commit() -> None:
    listed = options_of(plan().recipe, None, None)
    assert {row["granted"] for row in listed} == {None}
    assert all(row["expected"] for row in listed)


def test_the_plan_names_age_toolchain_fixups_and_steps() -> None:
    made = plan("x86_64-old", Release(2, 6, 24))
    edited = {made.fixups[0].name: True}
    data = plan_data(made, edited)
    text = "\n".join(plan_text(data))
    assert "age        v2.6.24, by the Makefile of its tree" in text
    assert "which says it is gcc" in text
    assert f"{made.fixups[0].name} ({made.fixups[0].range}) edits" in text
    assert f"{made.fixups[1].name} ({made.fixups[1].range}) finds nothing to edit" in text
    assert all(f"  {step}" in text for step in data["steps"])


def test_steps_are_those_of_the_driver() -> None:
    young, old = steps(plan()), steps(plan("x86_64-old", Release(2, 6, 24)))
    assert any(step.startswith("tuxmake ") for step in young)
    assert not any(step.startswith("tuxmake ") for step in old)
    assert any("CC=<shim>" in step for step in old)
    assert "make O=out ARCH=x86_64 tinyconfig" in young[0]
