"""Recipes: what is read, what is refused, and what a key covers."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.errors import RequestError
from bisector.schemas.kernel.build_plan import load_plan
from bisector.schemas.kernel.recipe import (
    DEFAULT_RECIPE,
    choose_recipe,
    effective_options,
    load_recipe,
    parse_fragment,
)
from bisector.schemas.kernel.release import Release
from tests.support.toy_kernel import write_recipes


def test_the_shipped_recipe_loads_and_says_why() -> None:
    recipe = load_recipe(DEFAULT_RECIPE)
    options = {option.name: option for option in recipe.options}
    assert options["PREEMPT_RT"].status == "wanted"
    assert options["SCHED_AUTOGROUP"].status == "wanted"
    assert options["VIRTIO_BLK"].status == "required"
    assert all(option.why for option in recipe.options), "every option says why it is there"


def test_required_and_wanted_are_told_from_the_effective_config() -> None:
    plan = load_plan(DEFAULT_RECIPE, Release(6, 1), "v6.1")
    config = effective_options(plan.config.replace("CONFIG_PREEMPT_RT=y\n", ""))
    assert plan.not_granted(config) == ("PREEMPT_RT",)
    assert all(asked.granted(config) for asked in plan.options if asked.required)
    assert not next(asked for asked in plan.options if asked.option.name == "VIRTIO_BLK").granted({})
    assert "CONFIG_VIRTIO_BLK=y\n" in plan.required


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CONFIG_A = y\n", "x.config:1: 'CONFIG_A = y' is not an option"),
        ("\nNONSENSE\n", "x.config:2: 'NONSENSE' is not an option"),
    ],
)
def test_a_line_that_is_no_option_is_refused(text: str, words: str) -> None:
    with pytest.raises(RequestError, match="is not an option") as error:
        parse_fragment(text, "x", "required", Path("x.config"))
    assert str(error.value) == words


def test_reasons_belong_to_the_options_below_them() -> None:
    options = "CONFIG_A=y\n# CONFIG_B is not set\n# Other.\nCONFIG_C=n\n"
    text = "# About the file.\n\n# For speed,\n# they say.\n" + options
    a, b, c = parse_fragment(text, "x", "wanted", Path("x.config"))
    assert (a.why, b.why, c.why) == ("For speed, they say.", "For speed, they say.", "Other.")
    assert (a.line, b.line, c.line) == ("CONFIG_A=y", "# CONFIG_B is not set", "# CONFIG_C is not set")


def test_contradicting_fragments_are_refused(tmp_path: Path) -> None:
    kernels = write_recipes(tmp_path / "kernels", wanted="# CONFIG_TOY is not set\n")
    with pytest.raises(RequestError, match="'toy' and 'speed' contradict each other") as error:
        load_recipe("toy", kernels)
    assert "CONFIG_TOY=y (toy)" in error.value.details


def test_unknown_names_are_met_with_the_known(tmp_path: Path) -> None:
    kernels = write_recipes(tmp_path / "kernels")
    with pytest.raises(RequestError, match="did you mean 'toy'"):
        load_recipe("toys", kernels)
    path = kernels / "recipes" / "toy.toml"
    path.write_text(path.read_text().replace('["speed"]', '["sped"]'))
    with pytest.raises(RequestError, match="no fragment 'sped'; did you mean 'speed'"):
        load_recipe("toy", kernels)
    path.write_text(path.read_text().replace("wanted", "wantd"))
    with pytest.raises(RequestError, match="unknown key 'wantd'; did you mean 'wanted'"):
        load_recipe("toy", kernels)


def test_the_digest_covers_options_and_flags_but_no_comment(tmp_path: Path) -> None:
    age = Release(6, 1)
    plain = load_plan("toy", age, "x", write_recipes(tmp_path / "a"))
    commented = load_plan("toy", age, "x", write_recipes(tmp_path / "b", required="# Why.\nCONFIG_TOY=y\n"))
    other = load_plan("toy", age, "x", write_recipes(tmp_path / "c", required="CONFIG_TOY=4\n"))
    assert plain.digest() == commented.digest()
    assert len({plain.digest(), plain.digest(1), other.digest()}) == 3


def test_a_layout_that_is_not_there_is_refused(tmp_path: Path) -> None:
    recipe = load_recipe("toy", write_recipes(tmp_path / "kernels"))
    assert recipe.flags(1) == "-falign-functions=64"
    with pytest.raises(RequestError, match=r"no layout 2 \(it has 1\)"):
        recipe.flags(2)


@pytest.mark.parametrize(
    ("takes", "fragments", "chosen"),
    [("", ["speed"], "small"), ("takes = []", ["speed"], "toy"), ("takes = []", [], "small")],
)
def test_a_recipe_is_chosen_only_with_the_fragments_that_it_takes(
    takes: str, fragments: list[str], chosen: str, tmp_path: Path
) -> None:
    kernels = write_recipes(tmp_path / "kernels")
    toy = kernels / "recipes" / "toy.toml"
    text = toy.read_text() + "auto = true\n"
    toy.write_text(text + "files = 2\n")
    (kernels / "recipes" / "small.toml").write_text(f"{text}files = 1\n{takes}\n")
    ages = [Release(6, 1)]
    assert choose_recipe(ages, fragments, kernels=kernels, serves=lambda _: True) == chosen
    assert choose_recipe(ages, fragments, kernels=kernels, serves=lambda one: one.name == "toy") == "toy"
    assert choose_recipe(ages, fragments, kernels=kernels) == "toy"
