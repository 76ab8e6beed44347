"""Blocks of a boot are summed up, bounded, and kept with what finds their kernel again."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from bisector.adapters.guest.counting import block_counts
from bisector.adapters.guest.counting.block_counts import BlockCounts
from bisector.adapters.guest.counting.count_file import RunCounts
from bisector.adapters.guest.counting.symbol_table import SymbolTable
from bisector.ports import Kernel
from bisector.schemas.counted_functions import BLOCKS, CountedBlocks

BASE = 0xFFFFFFFF81000000
SYMBOLS = SymbolTable(f"{BASE:x} T one\n{BASE + 100:x} T two\n{BASE + 200:x} T _etext\n")


def run(*blocks: tuple[int, ...]) -> RunCounts:
    return RunCounts(run=1, user=0, kernel=0, blocks=blocks)


def written(folder: Path, counts: BlockCounts) -> CountedBlocks:
    (folder / "image").write_bytes(b"kernel")
    kernel = Kernel("a" * 40, "r", "b", folder / "image", Path(), Path(), "6.1", "", 1.0, cached=True)
    counts.write(folder / "out", kernel)
    return CountedBlocks.model_validate_json(gzip.decompress((folder / "out" / BLOCKS).read_bytes()))


def test_means_of_runs_by_rising_addresses(tmp_path: Path) -> None:
    counts = BlockCounts()
    module = BASE + (1 << 24)
    counts.add(run((BASE + 100, 9, 3, 10), (BASE, 5, 2, 4), (module, 5, 2, 4)), SYMBOLS)
    counts.add(run((BASE + 100, 9, 3, 20, 7, 7, 7, 7), (BASE, 7, 3, 1)), SYMBOLS)
    found = written(tmp_path, counts)
    assert found.blocks == ((BASE, 5, 2.0), (BASE, 7, 0.5), (BASE + 100, 9, 15.0))
    assert (found.runs, found.arch, found.sha, found.recipe) == (2, "x86_64", "a" * 40, "r")
    assert found.image == str(tmp_path / "image")
    assert found.sha256 == hashlib.sha256(b"kernel").hexdigest()


def test_the_blocks_with_most_instructions_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_counts, "MAX_BLOCKS", 2)
    counts = BlockCounts()
    counts.add(run((BASE, 5, 2, 9), (BASE + 10, 5, 9, 9), (BASE + 20, 5, 10, 2)), SYMBOLS)
    found = written(tmp_path, counts)
    assert ([address for address, *_ in found.blocks], found.left_out) == ([BASE + 10, BASE + 20], 1)


def test_a_boot_without_a_run_leaves_nothing(tmp_path: Path) -> None:
    kernel = Kernel("a" * 40, "r", "b", tmp_path, Path(), Path(), "6.1", "", 1.0, cached=True)
    BlockCounts().write(tmp_path, kernel)
    assert list(tmp_path.iterdir()) == []
