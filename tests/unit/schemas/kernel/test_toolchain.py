"""Rows of compilers, and the shims through which old trees call a new one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bisector.errors import RequestError, SourceFailed
from bisector.schemas.kernel.build_plan import load_plan
from bisector.schemas.kernel.recipe import choose_recipe
from bisector.schemas.kernel.release import Release
from bisector.schemas.kernel.toolchain import Toolchain, load_toolchains, toolchain_for

OLD = next(row for row in load_toolchains().toolchain if row.name == "gcc-12-as-4.4")

IMAGE = f"registry.example.org/gcc@sha256:{'0' * 64}"


def called(tmp_path: Path, script: str, *arguments: str, compiler: str = "gcc-12") -> list[str]:
    """Run a shim with a compiler that prints its arguments; return them."""
    echo = tmp_path / compiler
    echo.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    echo.chmod(0o755)
    shim = tmp_path / "cc"
    shim.write_text(script)
    shim.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "PB_CCACHE": "", "PB_EXTRA_FLAGS": "-falign-functions=64"}
    done = subprocess.run([shim, *arguments], env=env, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_the_tree_is_told_another_version_and_its_own_arguments_win(tmp_path: Path) -> None:
    words = called(tmp_path, OLD.shim(), "-O2", "-fPIC", "-c", "a b.c")
    assert words[:2] == ["-U__GNUC__", "-D__GNUC__=4"]
    assert words.index("-fno-pie") < words.index("-fPIC") < words.index("-std=gnu89")
    assert "a b.c" in words, "arguments with spaces stay whole"
    assert words[-1] == "-falign-functions=64", "a layout's flags win"


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (["-Wl,-m,elf_x86_64", "x.o"], ["-m64", "x.o"]),
        (["-m", "elf_i386", "x.o"], ["-m32", "x.o"]),
        (["-m", "elf_x86_64"], ["-m64"]),
        (["-m", "other", "x.o"], ["-m", "other", "x.o"]),
        (["-d", "-o", "d"], ["-Wl,-d", "-o", "d"]),
        (["-Werror", "-Werror-implicit-function-declaration"], ["-Werror-implicit-function-declaration"]),
    ],
)
def test_arguments_that_a_new_compiler_refuses_are_swapped(
    tmp_path: Path, given: list[str], taken: list[str]
) -> None:
    words = called(tmp_path, OLD.shim(), *given)
    start = words.index("-no-pie") + 1
    assert words[start : words.index("-std=gnu89")] == taken


def test_a_compiler_asked_for_its_version_answers_for_itself(tmp_path: Path) -> None:
    assert called(tmp_path, OLD.shim(), "-v") == ["-v"]
    assert called(tmp_path, OLD.host_shim(), "-o", "conf")[-2:] == ["limits.h", "-w"]


def test_a_compiler_that_needs_no_shim_has_none() -> None:
    plain = Toolchain(name="gcc", compiler="gcc")
    assert (plain.shim(), plain.host_shim()) == ("", "")


def test_one_toolchain_covers_a_whole_range_and_the_rest_is_refused_with_the_reason() -> None:
    table = load_toolchains()
    for number in range(18, 33):
        assert toolchain_for(table, "gcc-12-as-4.4", Release(2, 6, number), "x") == OLD
    with pytest.raises(SourceFailed, match=r"abc \(v2\.6\.15\) cannot be built: .*panic") as error:
        toolchain_for(table, "gcc-12-as-4.4", Release(2, 6, 15), "abc")
    assert "the row 'mm-init', before v2.6.18" in error.value.details
    with pytest.raises(SourceFailed, match=r"does not build abc \(v6\.1\)"):
        toolchain_for(table, "gcc-12-as-4.4", Release(6, 1), "abc")
    with pytest.raises(RequestError, match="no toolchain 'gc'; did you mean 'gcc'"):
        toolchain_for(table, "gc", Release(6, 1), "abc")


def test_a_row_with_a_misspelt_key_or_an_odd_swap_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "toolchains.toml"
    file.write_text("[[toolchain]]\nname = 'x'\ncompilr = 'gcc'\n")
    with pytest.raises(RequestError, match=r"unknown key 'toolchain\.0\.compilr'; did you mean 'compiler'"):
        load_toolchains(tmp_path)
    file.write_text("[[toolchain]]\nname = 'x'\ncompiler = 'gcc'\n[toolchain.swap]\n'a b c' = 'd'\n")
    with pytest.raises(RequestError, match="must be one or two arguments"):
        load_toolchains(tmp_path)


@pytest.mark.parametrize(
    ("ages", "recipe"),
    [
        (["v6.1"], "x86_64-guest"),
        (["v2.6.18", "v2.6.30"], "x86_64-old"),
        (["v5.10", "v6.12"], "x86_64-guest"),
    ],
)
def test_the_recipe_is_chosen_by_the_ages_of_both_ends(ages: list[str], recipe: str) -> None:
    assert choose_recipe([Release.parse(age) for age in ages]) == recipe


def test_a_range_that_no_recipe_covers_is_refused_with_what_there_is() -> None:
    with pytest.raises(RequestError, match=r"no recipe is known to build v2\.6\.30 and v6\.1") as error:
        choose_recipe([Release.parse("v6.1"), Release.parse("v2.6.30")])
    assert "x86_64-old: v2.6.18 up to, not including," in error.value.details
    assert "--recipe" in error.value.cure


def test_what_is_required_depends_on_age() -> None:
    old, young = (load_plan("x86_64-old", Release(2, 6, n), "x") for n in (18, 32))
    assert "CONFIG_AIO=y\n" in young.required
    assert "CONFIG_AIO" not in old.required, "AIO was no option before v2.6.28"
    assert "CONFIG_PROC_SYSCTL=y|CONFIG_SYSCTL=y\n" in old.required
    assert old.not_granted({}) and "VIRTIO_BLK" not in old.not_granted({})
    assert "VIRTIO_BLK" in young.not_granted({})
    assert old.digest() != young.digest()
    assert (
        load_plan("x86_64-old", Release(2, 6, 29), "x").digest()
        == load_plan("x86_64-old", Release(2, 6, 29, 3), "x").digest()
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"container": "gcc:10"}, "must be NAME@sha256: and 64 hex digits"),
        ({"container": IMAGE}, "'container' needs driver = \"make\""),
        ({"container": IMAGE, "driver": "make", "package": "gcc-10"}, "it stands alone"),
    ],
)
def test_an_image_is_named_by_its_digest_and_is_the_only_origin(fields: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Toolchain.model_validate({"name": "boxed", "compiler": "gcc", **fields})


@pytest.mark.parametrize(
    "fields",
    [{"pretend": "4.4.7"}, {"before_flags": ["-fno-pie"]}, {"drop": ["-Werror"]}, {"host_flags": ["-w"]}],
)
def test_flags_that_tuxmake_would_not_pass_on_are_refused(fields: dict[str, object]) -> None:
    row = {"name": "old", "compiler": "gcc", **fields}
    with pytest.raises(ValueError, match='flags need driver = "make": tuxmake calls the compiler itself'):
        Toolchain.model_validate(row)
    assert Toolchain.model_validate({**row, "driver": "make"}).driver == "make"


def test_two_images_with_one_command_are_two_compilers() -> None:
    row = Toolchain(name="boxed", compiler="gcc", container=IMAGE, driver="make")
    assert row.identity == f"gcc-{'0' * 12}"
    assert row.origin == f"in the image {IMAGE}"
