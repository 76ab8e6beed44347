"""A death is found in the whole stream, however it is cut into pieces and whatever comes with it."""

from __future__ import annotations

import pytest

from bisector.linux.death_watch import DeathWatch

PANIC = b"[  3.1] Kernel panic - not syncing: Fatal exception\n"
OOPS = b"[  3.0] BUG: kernel NULL pointer dereference\n[  3.0] Oops: 0000 [#1] SMP\n"


def watched(*pieces: bytes) -> DeathWatch:
    watch = DeathWatch()
    for piece in pieces:
        watch.feed(piece)
    return watch


@pytest.mark.parametrize("size", [1, 2, 7, 64, 10_000])
def test_pieces_of_any_size_tell_the_same(size: int) -> None:
    stream = b"Linux version 6.1\r\n" * 50 + OOPS + b"Call Trace:\r\n" * 20 + PANIC + b"firmware\r\n" * 3
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    death = str(watched(*pieces).death())
    assert death.startswith("Linux version 6.1\n")
    assert "BUG: kernel NULL pointer" in death
    assert death.endswith("Kernel panic - not syncing: Fatal exception\nfirmware\nfirmware\nfirmware")


def test_a_death_stays_found_however_much_comes_behind_it() -> None:
    watch = watched(PANIC, *[b"firmware " * 1000 + b"\n"] * 2000)
    assert str(watch.death()).startswith("[  3.1] Kernel panic")
    assert len(str(watch.death())) < 1_000_000


def test_a_living_kernel_is_not_dead() -> None:
    assert watched(OOPS, b"login: ").death() is None
    assert watched().death() is None


def test_a_message_without_an_end_of_its_line_is_seen() -> None:
    assert watched(b"x\nKernel panic - not syncing: x").death() == "x\nKernel panic - not syncing: x"


@pytest.mark.parametrize("before", [0, 4090, 4096, 8_190, 100_000])
def test_a_message_in_a_line_without_an_end_is_seen_at_any_place(before: int) -> None:
    stream = b"z" * before + b"Kernel panic - not syncing: x"
    pieces = [stream[at : at + 100] for at in range(0, len(stream), 100)]
    assert "Kernel panic - not syncing: x" in str(watched(*pieces).death())


@pytest.mark.parametrize(
    "hostile",
    [
        b"\x1b[31mKernel panic\x1b[0m - not syncing: x",
        b"\0\0Kernel\0 panic - not syncing: x",
        b"\xff\xfeKernel panic - not syncing: x",
        b"\x1b]0;title\x07Kernel panic - not syncing: x",
        b"Kernel panic - \x9bnot syncing: x"[:15] + b"not syncing: x",
    ],
)
def test_hostile_bytes_hide_no_death_and_reach_no_reader(hostile: bytes) -> None:
    death = str(watched(hostile, b"\n").death())
    assert "Kernel panic - not syncing: x" in death
    assert death.replace("\n", "").isprintable()


def test_what_is_kept_is_bounded_without_a_death() -> None:
    watch = watched(*[b"a" * 65536] * 100, *[b"line\n" * 10_000] * 10)
    assert sum(map(len, watch._lines)) + len(watch._rest) < 1_000_000
    assert watch.death() is None
