"""The newc format: alignment, and the same bytes for the same entries."""

from __future__ import annotations

from bisector.adapters.guest.cpio import ArchiveEntry, cpio, file, folder


def test_every_entry_starts_at_a_multiple_of_four() -> None:
    for size in range(9):
        archive = cpio([ArchiveEntry("x" * (size + 1), 0o100644, b"d" * size), ArchiveEntry("y", 0o100644)])
        second = archive.index(b"070701", 6)
        assert len(archive) % 4 == second % 4 == 0


def test_the_header_has_mode_size_and_links() -> None:
    archive = cpio([folder("d"), file("d/x", b"12345", executable=True), file("d/y", b"")])
    fields = [archive[at + 6 : at + 110] for at in _headers(archive)]
    modes = [int(header[8:16], 16) for header in fields]
    assert modes == [0o40755, 0o100755, 0o100644, 0]
    assert [int(header[32:40], 16) for header in fields] == [2, 1, 1, 1]
    assert [int(header[48:56], 16) for header in fields] == [0, 5, 0, 0]
    assert archive.endswith(b"TRAILER!!!\0" + bytes(-len(b"TRAILER!!!\0" + bytes(110)) % 4))


def _headers(archive: bytes) -> list[int]:
    return [at for at in range(0, len(archive), 4) if archive.startswith(b"070701", at)]
