"""Where configurations start."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from bisector.errors import RequestError
from bisector.schemas.kernel import base_config as base
from bisector.schemas.kernel.build_plan import load_plan
from bisector.schemas.kernel.release import Release
from tests.support.toy_kernel import RECIPE, write_recipes

CONFIG = "# a comment\nCONFIG_A=y\n# CONFIG_B is not set\n\nCONFIG_C=m\n"
LINES = "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=m\n"


def test_a_target_of_make_is_left_to_the_tree(tmp_path: Path) -> None:
    for name in ("tinyconfig", "defconfig", "allnoconfig"):
        assert base.base_config(name, tmp_path, "r") == ""


def test_a_file_may_be_packed_and_only_its_options_count(tmp_path: Path) -> None:
    (tmp_path / "plain.config").write_text(CONFIG)
    (tmp_path / "config.gz").write_bytes(gzip.compress(CONFIG.encode()))
    assert base.base_config("plain.config", tmp_path, "r") == LINES
    assert base.base_config(str(tmp_path / "config.gz"), Path("/nowhere"), "r") == LINES


def test_a_base_that_is_not_there_or_holds_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty.config").write_text("# nothing\n")
    with pytest.raises(RequestError, match=r"r\.toml: the base .* contains no option"):
        base.base_config("empty.config", tmp_path, "r.toml")
    with pytest.raises(RequestError, match=r"r\.toml: the base 'none\.config' cannot be read") as error:
        base.base_config("none.config", tmp_path, "r.toml")
    assert "'defconfig'" in error.value.cure
    monkeypatch.setattr(base, "_PROC", tmp_path / "no")
    monkeypatch.setattr(base, "_BOOT", tmp_path)
    with pytest.raises(RequestError, match="is not to be found"):
        base.base_config(base.RUNNING, tmp_path, "r.toml")
    monkeypatch.setattr(base, "_PROC", tmp_path / "empty.config")
    (tmp_path / "empty.config").write_text(CONFIG)
    assert base.base_config(base.RUNNING, tmp_path, "r.toml") == LINES


def test_what_a_base_says_is_part_of_a_kernels_name(tmp_path: Path) -> None:
    kernels = write_recipes(tmp_path / "kernels")

    def digest(text: str, rest: str = "off") -> str:
        (kernels / "configs" / "mine.config").write_text(text)
        recipe = f'base = "mine.config"\nrest = "{rest}"\n{RECIPE}'
        (kernels / "recipes" / "toy.toml").write_text(recipe)
        return load_plan("toy", Release(6, 1), "x", kernels).digest()

    first = digest(CONFIG)
    assert digest("# another comment\n" + CONFIG) == first
    assert digest(CONFIG.replace("C=m", "C=y")) != first
    assert digest(CONFIG, "default") != first
