"""Errors of YAML and TOML files name file, line and key, and say what would be right."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field, model_validator

from bisector.errors import RequestError, nearest
from bisector.schemas.loading import Spec, load_toml, load_yaml


class Inner(Spec):
    size: int = Field(ge=1)
    kind: Literal["a", "b"] = "a"
    hyphened: str = Field(default="", alias="hyphen")


class Outer(Spec):
    name: str
    inner: tuple[Inner, ...] = Field(default=(), min_length=0)
    needed: tuple[Inner, ...] = Field(default=(Inner(size=1),), min_length=1)
    table: Inner | None = None

    @model_validator(mode="after")
    def _not_forbidden(self) -> Outer:
        if self.name == "forbidden":
            raise ValueError("this name is taken")
        return self


def refused(tmp_path: Path, suffix: str, text: str) -> RequestError:
    file = tmp_path / f"file.{suffix}"
    file.write_text(text)
    with pytest.raises(RequestError) as caught:
        (load_yaml if suffix == "yaml" else load_toml)(file, Outer)
    caught.value.message = caught.value.message.removeprefix(str(file))
    return caught.value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "name: x\ninner:\n  - size: 0\n",
            ":3: key 'inner.0.size': must be at least 1 (got 0)",
        ),
        (
            "name: x\ninner:\n  - size: 1\n  - {size: 2, kind: c}\n",
            ":4: key 'inner.1.kind': must be 'a' or 'b' (got 'c')",
        ),
        ("nam: x\n", ":1: unknown key 'nam'; did you mean 'name'? (known: name, inner, needed, table)"),
        ("inner: []\n", ": the key 'name' is missing"),
        (
            "name: x\ntable: {size: 1, hyphe: a}\n",
            ":2: unknown key 'table.hyphe'; did you mean 'hyphen'? (known: size, kind, hyphen)",
        ),
        ("name: [1]\n", ":1: key 'name': must be text"),
        ("name: x\ninner: 3\n", ":2: key 'inner': must be a list (got 3)"),
        ("name: x\ntable: 3\n", ":2: key 'table': must be a mapping of keys to values (got 3)"),
        ("name: forbidden\n", ": this name is taken"),
        ("- a\n", ": expected keys and values at the top level"),
        ("name: {\n", ":2: not valid YAML: a value is missing, or a bracket too many"),
        ("name: \x07\n", ":1: holds the control character U+0007"),
    ],
)
def test_what_is_wrong_in_a_yaml_file(tmp_path: Path, text: str, message: str) -> None:
    assert refused(tmp_path, "yaml", text).message == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'name = "x"\n[[inner]]\nsize = 1\n[[inner]]\nsize = 0\n',
            ":5: key 'inner.1.size': must be at least 1 (got 0)",
        ),
        ('name = "x"\n[[inner]]\nsize = 1\n[[inner]]\nkind = "a"\n', ":4: the key 'inner.1.size' is missing"),
        (
            'name = "x"\n[table]  # why\n"siz" = 1\n',
            ":3: unknown key 'table.siz'; did you mean 'size'? (known: size, kind, hyphen)",
        ),
        (
            'name = """\nsize = 1\n"""\n[table]\nsize = 0\n',
            ":5: key 'table.size': must be at least 1 (got 0)",
        ),
        (
            "name = \n",
            ":1: not valid TOML: a value was expected: text in quotes, a number, true, false or a list",
        ),
    ],
)
def test_what_is_wrong_in_a_toml_file(tmp_path: Path, text: str, message: str) -> None:
    assert refused(tmp_path, "toml", text).message == message


def test_a_misspelt_key_comes_first_and_the_others_are_details(tmp_path: Path) -> None:
    error = refused(tmp_path, "yaml", "inner:\n  - size: 0\nnmae: x\n")
    assert error.message.startswith(":3: unknown key 'nmae'")
    assert "the key 'name' is missing" in error.details
    assert "'inner.0.size'" in error.details


def test_a_list_is_not_called_too_short_because_its_only_element_is_wrong(tmp_path: Path) -> None:
    error = refused(tmp_path, "yaml", "name: x\nneeded:\n  - size: 0\n")
    assert "'needed.0.size'" in error.message
    assert error.details == ""
    assert refused(tmp_path, "yaml", "name: x\nneeded: []\n").message == ":2: key 'needed': must not be empty"


def test_a_long_value_is_cut(tmp_path: Path) -> None:
    assert f"(got '{'y' * 79}...)" in refused(tmp_path, "yaml", f"name: x\ninner: {'y' * 200}\n").message


def test_a_file_that_is_missing_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"absent\.yaml: no such file"):
        load_yaml(tmp_path / "absent.yaml", Outer)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RequestError, match=r"binary\.toml:1: not text"):
        load_toml(tmp_path / "binary.toml", Outer)


def test_an_empty_file_has_the_defaults_or_names_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    with pytest.raises(RequestError, match="the key 'name' is missing"):
        load_yaml(tmp_path / "empty.yaml", Outer)


def test_nearest() -> None:
    assert nearest("wrokload", ["workload", "repo"]) == "; did you mean 'workload'?"
    assert nearest("zzz", ["workload", "repo"]) == ""
