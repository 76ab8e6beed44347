"""Lists of kernels (`--kernels`) that name nothing, no kernels, or kernels in no order."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bad_input.harness import Row, check_row, each_row
from tests.support.kernels import kernel_packages as packages

START = ["start", "--kernels", "list", "--good", "6.1-1", "--bad", "6.2-1", "--workload", "pipe-test"]


def of(*lines: str) -> Callable[[Path], None]:
    """Return what makes two packages, a folder of a kernel, and a list of these lines."""

    def make(place: Path) -> None:
        for version in ("6.1-1", "6.2-1"):
            made = packages.deb(place / "debs", version)
            made.rename(place / f"{version}.deb")
        shutil.rmtree(place / "debs")
        packages.kernel_folder(place / "own", "6.3.0")
        (place / "list").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    return make


def folder(*names: str) -> Callable[[Path], None]:
    """Return what makes a folder of that name with these of the kernels."""

    def make(place: Path) -> None:
        of()(place)
        (place / "list").unlink()
        (place / "list").mkdir()
        for name in names:
            (place / name).rename(place / "list" / name)

    return make


def damaged(place: Path) -> None:
    of("6.1-1.deb", "6.2-1.deb")(place)
    path = place / "6.2-1.deb"
    path.write_bytes(path.read_bytes()[:700])


BOTH = ("6.1-1.deb", "6.2-1.deb")

ROWS = [
    Row("no such list", START, ["list: no such file", "mend the path"]),
    Row("an empty list", START, ["names no kernel", "list two at least"], files={"list": ""}),
    Row("a list of remarks", START, ["names no kernel"], files={"list": "# 6.1-1.deb\n\n"}),
    Row("a list that is no text", START, ["UTF-8"], files={"list": b"\xff\xfe6.1-1.deb\n"}),
    Row("a list too long", START, ["larger than 1 MiB"], files={"list": "#" * (2 << 20)}),
    Row("an open quotation", START, [":1", "close the quotation"], files={"list": "'6.1-1.deb\n"}),
    Row("a line of nothing there", START, [":1", "does not exist"], files={"list": "6.0-1.deb\n"}),
    Row("a home of nobody", START, [":1", "no such user's home"], files={"list": "~no-such-user/6.1.deb\n"}),
    Row("one kernel only", START, ["names one kernel"], setup=of("6.1-1.deb")),
    Row("a kernel twice", START, [":2: the same kernel as"], setup=of("6.1-1.deb", *BOTH)),
    Row("a list of a text file", START, ["is no package and no kernel's folder"], setup=of(*BOTH, "old.txt")),
    Row("a folder beside a package in a line", START, [":1", "is no package"], setup=of("6.1-1.deb own")),
    Row("a folder that holds no kernel", START, [":3"], setup=of(*BOTH, "linux")),
    Row("a damaged package", START, [":2", "a damaged package", "fetch it again"], setup=damaged),
    Row("an empty folder", START, ["names no kernel"], setup=folder()),
    Row("folders without an order", START, ["have no order of their own"], setup=folder("own", *BOTH)),
    Row("no option for it", ["start", "--kernels", "", *START[3:]], ["--kernels"]),
    Row("good that is not listed", [*START[:4], "6.9-1", *START[5:]], ["6.9-1"], setup=of(*BOTH)),
    Row(
        "good after bad",
        [*START[:3], "--good", "6.2-1", "--bad", "6.1-1", *START[7:]],
        ["6.2-1"],
        setup=of(*BOTH),
    ),
    Row(
        "one end twice",
        [*START[:3], "--good", "6.1-1", "--bad", "6.1-1", *START[7:]],
        ["6.1-1"],
        setup=of(*BOTH),
    ),
    Row("patches on packages", [*START, "--apply", "mine.patch"], ["--apply"], setup=of(*BOTH)),
    Row("priors of packages", [*START, "--priors", "old.txt"], ["--priors has no meaning"], setup=of(*BOTH)),
]


@each_row(ROWS)
def test_a_list_is_refused(
    row: Row, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_row(row, place, capsys, monkeypatch)
