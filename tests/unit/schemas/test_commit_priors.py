"""The file of `--priors`: what it says, in full ids, and what is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.errors import RequestError
from bisector.schemas import commit_priors
from bisector.schemas.commit_priors import Priors

A, B = "a1" * 20, "b2" * 20
NEAR_A = A[:-1] + "f"


def read_priors(path: Path, candidates: list[str]) -> Priors:
    """Read a file in a history that has every path but those below 'none'."""
    return commit_priors.read_priors(
        path, candidates, lambda paths: [one for one in paths if one.startswith("none")]
    )


def write(folder: Path, text: str) -> Path:
    path = folder / "priors.toml"
    path.write_text(text)
    return path


def test_beginnings_of_ids_become_whole_ones(tmp_path: Path) -> None:
    text = f'[commits]\n"{A}" = 8\n{B[:7]} = 0.5\n[paths]\n"mm/" = 4\n"kernel/fork.c" = 1e-3\n'
    found = read_priors(write(tmp_path, text), [B, A, NEAR_A])
    assert found.commits == {A: 8, B: 0.5}
    assert found.paths == {"mm/": 4, "kernel/fork.c": 0.001}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            f"[commits]\n{B[:7]} = 1\n{B[:8]} = 2",
            f":3: key 'commits.{B[:8]}': is the same commit as '{B[:7]}'",
        ),
        (f"[commits]\n{A[:12]} = 1", f":2: key 'commits.{A[:12]}': several commits have an id"),
        ("[commits]\n1234567 = 1", ":2: key 'commits.1234567': no commit that is searched has this id"),
        (f"[commits]\n{B[:6]} = 1", ": a key must be 7 to 40 digits"),
        (f"[commits]\n{B[:9].upper()} = 1", ": a key must be 7 to 40 digits"),
        ("[paths]\n'/mm' = 1", ": a key must be a path of the kernel's tree"),
        ("[paths]\n'mm/../x' = 1", ": a key must be a path of the kernel's tree"),
        ("[paths]\n'.' = 1", ": a key must be a path of the kernel's tree"),
        ("[paths]\n'mm//' = 1", ": a key must be a path of the kernel's tree"),
        ("[paths]\n'' = 1", ": a key must be a path of the kernel's tree"),
        ("[paths]\n'mm/' = 0", ":2: key 'paths.mm/': must be from 0.001 to 1,000 (got 0)"),
        ("[paths]\n\n'mm/' = 1001", ":3: key 'paths.mm/': must be from 0.001 to 1,000"),
        ("[paths]\n'mm/' = true", ":2: key 'paths.mm/': must be a number (got true)"),
        ("[paths]\n'mm/' = '4'", ":2: key 'paths.mm/': must be a number"),
        (
            "[paths]\n'mm/' = 4\n'none/' = 2",
            ":3: key 'paths.none/': no commit that is searched has this file",
        ),
        ("[paths]\n'mm/' = 4\n'mm' = 2", ":3: key 'paths.mm': is the same folder as 'mm/'"),
        ("[path]\n'mm/' = 4", ":1: unknown key 'path'"),
        ("[paths]\n" + "".join(f"f{n} = 1\n" for n in range(1001)), "must have at most 1000 entries"),
        ("# mm/ = 4", "names no commit and no path"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(RequestError) as caught:
        read_priors(path, [A, B, NEAR_A])
    assert caught.value.message.startswith(str(path))
    assert says in caught.value.message
    assert caught.value.cure


@pytest.mark.parametrize("name", ["mm", ".mailmap", "mm/..a", "Documentation/a b.txt", "x..y/"])
def test_names_of_files_that_look_odd_are_paths(tmp_path: Path, name: str) -> None:
    assert read_priors(write(tmp_path, f"[paths]\n'{name}' = 2"), []).paths == {name: 2}
