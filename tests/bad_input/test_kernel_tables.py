"""Tables and recipes of `kernels/` that cannot be: each file broken in turn, in a copy of the folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bisector import resources
from bisector.schemas.kernel import recipe, release
from tests.bad_input.broken_documents import ANY_LANGUAGE, TOML, broken, not_a_file
from tests.bad_input.harness import Row, check_row, each_row

EXPLAIN = ["kernel", "explain", "v5", "--repo", "linux", "--recipe", "x86_64-guest"]

RECIPE = """\
summary = "x"
arch = "x86_64"
required = ["lean"]
"""
TOOLCHAIN = '[[toolchain]]\nname = "gcc"\ncompiler = "gcc"\n'
FIXUP = '[[fixup]]\nname = "x"\nfiles = ["a"]\npattern = "a"\nreplacement = "b"\nwhy = "c"\n'
OPTION = '[[option]]\nname = "AIO"\n'
DIGEST = "0" * 64

WRONG = {
    "recipes/x86_64-guest.toml": {
        "no keys": ("", "the key 'summary' is missing"),
        "an unknown key": (RECIPE + "requierd = []\n", ":4: unknown key 'requierd'"),
        "another architecture": (RECIPE.replace("x86_64", "vax"), ":2: key 'arch': must be 'x86_64'"),
        "no fragment": (RECIPE.replace('["lean"]', "[]"), ":3: key 'required': must not be empty"),
        "an unknown fragment": (RECIPE.replace("lean", "laen"), "there is no fragment 'laen'"),
        "a fragment elsewhere": (RECIPE.replace("lean", "../lean"), ":3: key 'required.0'"),
        "a fragment twice": (
            RECIPE.replace('"lean"', '"lean", "lean"'),
            ":3: key 'required': 'lean' is there twice",
        ),
        "an image elsewhere": (RECIPE + 'image = ["../vmlinux"]\n', ":4: key 'image.0'"),
        "an absolute image": (RECIPE + 'image = ["/vmlinux"]\n', ":4: key 'image.0'"),
        "a layout with a line break": (RECIPE + 'layouts = ["-O2\\n-O3"]\n', ":4: key 'layouts.0'"),
        "a layout twice": (RECIPE + 'layouts = ["-O2", "-O2"]\n', ":4: key 'layouts': '-O2' is there twice"),
        "a range backwards": (
            RECIPE + 'since = "v5.4"\nbefore = "v5.0"\n',
            ":5: key 'before': the range ends",
        ),
        "a release without a v": (RECIPE + 'since = "5.4"\n', ":4: key 'since': '5.4' is not a release"),
        "a release of 5,000 digits": (RECIPE + f'since = "v5.{"4" * 5000}"\n', ":4: key 'since'"),
        "a base that is absent": (
            RECIPE + 'base = "absent.config"\n',
            "the base 'absent.config' cannot be read",
        ),
        "a base that is a folder": (RECIPE + 'base = "/tmp"\n', "the base '/tmp' cannot be read"),
        "a base without end": (RECIPE + 'base = "/dev/zero"\n', "the base '/dev/zero' cannot be read"),
        "a base of nobody": (RECIPE + 'base = "~no-such-user/x"\n', "the base '~no-such-user/x'"),
        "a base without options": (RECIPE + 'base = "/etc/hostname"\n', "contains no option"),
        "an unknown toolchain": (RECIPE + 'toolchain = "tcc"\n', "there is no toolchain 'tcc'"),
        "files of nothing": (RECIPE + "files = 0\n", ":4: key 'files'"),
        "an unknown fragment to take": (RECIPE + 'takes = ["laen"]\n', "there is no fragment 'laen'"),
        "true as text": (RECIPE + 'auto = "maybe"\n', ":4: key 'auto': must be true or false"),
    },
    "toolchains.toml": {
        "two rows for one release": (TOOLCHAIN + TOOLCHAIN, ":4: key 'toolchain.1': the row 'gcc'"),
        "no row": ("toolchain = []\n", ":1: key 'toolchain': must not be empty"),
        "a row without a compiler": ('[[toolchain]]\nname = "gcc"\n', ":1: the key 'toolchain.0.compiler'"),
        "a name of spaces": (TOOLCHAIN.replace('name = "gcc"', 'name = "g c"'), ":2: key 'toolchain.0.name'"),
        "a version of letters": (TOOLCHAIN + 'pretend = "new"\n', ":4: key 'toolchain.0.pretend'"),
        "a digest too short": (TOOLCHAIN + 'archive = {file = "a", sha256 = "0"}\n', "must be 64 hex digits"),
        "an archive elsewhere": (TOOLCHAIN + f'archive = {{file = "../a", sha256 = "{DIGEST}"}}\n', "'../a'"),
        "an image by its tag": (TOOLCHAIN + 'driver = "make"\ncontainer = "gcc:10"\n', ":5: key"),
        "a swap of three words": (TOOLCHAIN + 'swap = {"a b c" = "d"}\n', ":4: key 'toolchain.0.swap'"),
        "flags as text": (
            TOOLCHAIN + 'after_flags = "-w"\n',
            ":4: key 'toolchain.0.after_flags': must be a list",
        ),
        "an architecture that is ignored": (
            TOOLCHAIN + '[[unbuildable]]\nname = "x"\nreason = "y"\narch = "arm64"\n',
            ":7: unknown key 'unbuildable.0.arch'",
        ),
    },
    "fixups.toml": {
        "a pattern left open": (FIXUP.replace('"a"\nrep', '"("\nrep'), ":4: key 'fixup.0.pattern'"),
        "an empty pattern": (
            FIXUP.replace('"a"\nrep', '""\nrep'),
            ":4: key 'fixup.0.pattern': must not be empty",
        ),
        "a pattern too large": (
            FIXUP.replace('"a"\nrep', '"a{99999999999}"\nrep'),
            "too large for a regular",
        ),
        "a group that is none": (FIXUP.replace('"b"', "'\\1'"), ":5: key 'fixup.0.replacement'"),
        "a name that is none": (FIXUP.replace('"b"', "'\\g<x>'"), ":5: key 'fixup.0.replacement'"),
        "a file elsewhere": (FIXUP.replace('["a"]', '["a", "b/../../c"]'), ":3: key 'fixup.0.files.1'"),
        "a file twice": (FIXUP.replace('["a"]', '["a", "a"]'), ":3: key 'fixup.0.files': 'a' is there twice"),
        "no reason": (FIXUP.replace('"c"', '""'), ":6: key 'fixup.0.why': must not be empty"),
        "two rows for one release": (FIXUP + FIXUP, ":7: key 'fixup.1'"),
    },
    "options.toml": {
        "two rows for one release": (OPTION + OPTION, ":4: key 'option.1.name': 'AIO' has a row already"),
        "two rows side by side": (
            OPTION + 'before = "v3.0"\n' + OPTION + 'since = "v3.0"\n',
            ":5: key 'option.1.name': 'AIO' has a row already",
        ),
        "an option older than itself": (OPTION + 'was = "AIO"\n', ":3: key 'option.0.was'"),
        "two options older than each other": (
            OPTION + 'was = "B"\n[[option]]\nname = "B"\nwas = "AIO"\n',
            ":3: key 'option.0.was': an option cannot be older than itself",
        ),
        "a name with CONFIG_": (OPTION.replace("AIO", "CONFIG_AIO"), ":2: key 'option.0.name'"),
        "an unknown architecture": (OPTION + 'arch = ["vax"]\n', ":3: key 'option.0.arch.0'"),
        "an architecture twice": (OPTION + 'arch = ["arm64", "arm64"]\n', "'arm64' is there twice"),
    },
}

FILES = tuple(WRONG)

ROWS = [
    *(
        Row(
            f"{file}: {name}",
            EXPLAIN,
            [file, words] if words[0] == ":" else [words],
            {f"kernels/{file}": text},
        )
        for file, table in WRONG.items()
        for name, (text, words) in table.items()
    ),
    *broken("toolchains", "kernels/toolchains.toml", EXPLAIN, TOML),
    *broken("recipe", f"kernels/{FILES[0]}", EXPLAIN, ANY_LANGUAGE),
    *broken("fragment", "kernels/configs/lean.config", EXPLAIN, ANY_LANGUAGE),
    *(row for file in FILES for row in not_a_file(file, f"kernels/{file}", EXPLAIN)),
    *not_a_file("fragment", "kernels/configs/lean.config", EXPLAIN),
    Row("fragment: no option", EXPLAIN, [":1: 'CONFIG' is not"], {"kernels/configs/lean.config": "CONFIG\n"}),
]


@each_row(ROWS)
def test_a_table_is_refused(
    row: Row, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(resources.resource("kernels"), place / "kernels")
    for module in (recipe, release):
        monkeypatch.setattr(module, "resource", lambda name: place / name)
    check_row(row, place, capsys, monkeypatch)
