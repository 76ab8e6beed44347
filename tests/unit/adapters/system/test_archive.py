"""Archives from elsewhere: nothing lands outside one folder, and nothing fills the disk."""

from __future__ import annotations

import gzip
import io
import lzma
import shutil
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from bisector.adapters.system.archive import ArchiveError, read_compressed, unpack_tar

MIB = 1 << 20


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as out:  # type: ignore[call-overload]
        for info, data in members:
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o7777) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    return info


def unpacked(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
def test_files_and_folders_only(tmp_path: Path, mode: str) -> None:
    sent = tar(
        tmp_path / "a.tar",
        (member("./out", tarfile.DIRTYPE), b""),
        (member("./out/empty", tarfile.DIRTYPE), b""),
        (member("./out/deep/a"), b"text"),
        (member("./out/plain", mode=0o4640), b""),
        (member("./out/link", tarfile.SYMTYPE, "/etc/passwd"), b""),
        (member("./out/hard", tarfile.LNKTYPE, "out/deep/a"), b""),
        (member("./out/device", tarfile.CHRTYPE), b""),
        (member("./out/fifo", tarfile.FIFOTYPE), b""),
        mode=mode,
    )
    unpack_tar(sent, tmp_path / "home", max_bytes=MIB)
    assert unpacked(tmp_path / "home") == ["out", "out/deep", "out/deep/a", "out/empty", "out/plain"]
    assert (tmp_path / "home/out/deep/a").read_bytes() == b"text"
    assert (tmp_path / "home/out/deep/a").stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "home/out/plain").stat().st_mode & 0o7777 == 0o644


@pytest.mark.parametrize("name", ["/etc/cron.d/x", "../x", "out/../../x", "out/../x"])
def test_nothing_lands_elsewhere(name: str, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="lies outside"):
        unpack_tar(tar(tmp_path / "a.tar", (member(name), b"x")), tmp_path / "home", max_bytes=MIB)
    assert not (tmp_path / "x").exists()


def test_folders_in_folders_end(tmp_path: Path) -> None:
    """Python makes and removes each by calling itself: 2,000 of them were a defect of perfbisect."""
    deep = tar(tmp_path / "a.tar", (member("d/" * 2000 + "x"), b"x"))
    with pytest.raises(ArchiveError, match="more than 100 folders deep"):
        unpack_tar(deep, tmp_path / "home", max_bytes=MIB)
    linux = tar(tmp_path / "b.tar", (member("d/" * 20 + "x"), b"x"))
    unpack_tar(linux, tmp_path / "home", max_bytes=MIB)
    assert len(unpacked(tmp_path / "home")) == 21


def test_a_link_is_no_way_out(tmp_path: Path) -> None:
    sent = tar(
        tmp_path / "a.tar",
        (member("out", tarfile.SYMTYPE, str(tmp_path / "elsewhere")), b""),
        (member("out/x"), b"x"),
    )
    unpack_tar(sent, tmp_path / "home", max_bytes=MIB)
    assert unpacked(tmp_path / "home") == ["out", "out/x"]
    assert not (tmp_path / "elsewhere").exists()


def test_limits_of_bytes_and_members(tmp_path: Path) -> None:
    sent = tar(tmp_path / "a.tar", *((member(f"f{n}"), b"x" * 100) for n in range(5)))
    unpack_tar(sent, tmp_path / "fits", max_bytes=500, max_members=5)
    assert len(unpacked(tmp_path / "fits")) == 5
    for size, members in ((499, 5), (500, 4)):
        with pytest.raises(ArchiveError, match="more than"):
            unpack_tar(sent, tmp_path / "full", max_bytes=size, max_members=members)
    assert len(unpacked(tmp_path / "full")) == 4


@pytest.mark.parametrize("name", ["graph", "./graph", "graph/"])
def test_a_file_may_have_a_limit_of_its_own(tmp_path: Path, name: str) -> None:
    sent = tar(tmp_path / "a.tar", (member("first"), b"x" * 100), (member(name), b"x" * 100))
    unpack_tar(sent, tmp_path / "fits", max_bytes=500, limits={"graph": 100})
    with pytest.raises(ArchiveError, match=r"graph.* is larger than"):
        unpack_tar(sent, tmp_path / "full", max_bytes=500, limits={"graph": 99})
    assert unpacked(tmp_path / "full") == ["first"]


def test_a_file_of_zeros_that_is_small_when_packed(tmp_path: Path) -> None:
    sent = tar(tmp_path / "a.tar", (member("zeros"), b"\0" * 4 * MIB), mode="w:gz")
    assert sent.stat().st_size < MIB
    with pytest.raises(ArchiveError, match="more than"):
        unpack_tar(sent, tmp_path / "home", max_bytes=MIB)
    assert not (tmp_path / "home").exists()


EXTENDED = [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, b"L", b"K"]


@pytest.mark.parametrize("kind", EXTENDED)
def test_a_huge_header_does_not_fill_the_memory(tmp_path: Path, kind: bytes) -> None:
    """Packed, it is 300 KiB; `tarfile` alone took 64 MiB and more for it."""
    sent = tar(tmp_path / "a.tar", (member("huge", kind), bytes(64 * MIB)), (member("x"), b""), mode="w:gz")
    tracemalloc.start()
    try:
        with pytest.raises(ArchiveError) as error:
            unpack_tar(sent, tmp_path / "home", max_bytes=MIB)
        assert tracemalloc.get_traced_memory()[1] < 8 * MIB
    finally:
        tracemalloc.stop()
    assert error.value.details == "a header of 67108864 bytes, where 1048576 are allowed"


def test_many_headers_do_not_fill_the_memory(tmp_path: Path) -> None:
    """Attributes of each file are not kept, and all headers together have a limit."""
    attribute = b"1048576 comment=" + b"x" * (MIB - 17) + b"\n"
    pair = (member("pax", tarfile.XHDTYPE), attribute), (member("empty"), b"")
    sent = tar(tmp_path / "a.tar", *pair * 65, mode="w:gz")
    tracemalloc.start()
    try:
        with pytest.raises(ArchiveError) as error:
            unpack_tar(sent, tmp_path / "home", max_bytes=MIB)
        assert tracemalloc.get_traced_memory()[1] < 48 * MIB
    finally:
        tracemalloc.stop()
    assert "more than 64 MiB of headers" in str(error.value.details)


def test_headers_of_headers_end(tmp_path: Path) -> None:
    """`tarfile` reads what follows a header by recursion: 400 of them were a RecursionError."""
    chain = (member("long", tarfile.GNUTYPE_LONGNAME), b"name"), (member("x"), b"")
    unpack_tar(tar(tmp_path / "few.tar", *chain[:1] * 16, chain[1]), tmp_path / "few", max_bytes=MIB)
    with pytest.raises(ArchiveError):
        unpack_tar(tar(tmp_path / "many.tar", *chain[:1] * 400, chain[1]), tmp_path / "many", max_bytes=MIB)


def test_a_header_of_less_than_nothing(tmp_path: Path) -> None:
    sent = tar(tmp_path / "a.tar", (member("negative", tarfile.XHDTYPE), b""), (member("x"), b""))
    data = bytearray(sent.read_bytes())
    data[124:136] = b"\xff" * 11 + b"\x00"  # -256, as GNU writes numbers
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    sent.write_bytes(data)
    with pytest.raises(ArchiveError, match="cannot be unpacked"):
        unpack_tar(sent, tmp_path / "home", max_bytes=MIB)


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_long_names_and_attributes_are_read(tmp_path: Path, form: int) -> None:
    name = "/".join(["f" * 200] * 15)
    with tarfile.open(tmp_path / "a.tar", "w", format=form, pax_headers={"comment": "of all"}) as out:
        info = member(name)
        info.pax_headers = {"SCHILY.xattr.user.note": "y" * (64 << 10)}
        out.addfile(info)
    unpack_tar(tmp_path / "a.tar", tmp_path / "home", max_bytes=MIB)
    assert (tmp_path / "home" / name).is_file()


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_half_an_archive(tmp_path: Path, mode: str) -> None:
    noise = bytes(n * n % 251 for n in range(100_000))
    whole = tar(tmp_path / "a.tar", (member("out"), noise), mode=mode).read_bytes()
    (tmp_path / "half.tar").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ArchiveError, match="cannot be unpacked"):
        unpack_tar(tmp_path / "half.tar", tmp_path / "home", max_bytes=MIB)


@pytest.mark.parametrize("mode", ["w:gz", "w:xz", "w:bz2"])
def test_one_wrong_bit_of_a_compressed_archive_is_found(tmp_path: Path, mode: str) -> None:
    """Most archives with one were unpacked, with other numbers or without the files behind it."""
    files = [(member(f"run-{n}.txt"), f"real {1000 + n * n % 97} s\n".encode() * 5) for n in range(20)]
    whole = tar(tmp_path / "a.tar", *files, mode=mode).read_bytes()
    sent, home = tmp_path / "sent.tar", tmp_path / "home"
    unpack_tar(tmp_path / "a.tar", home, max_bytes=MIB)
    right = {path.name: path.read_bytes() for path in home.iterdir()}
    wrong = []
    for place in range(12, len(whole) - 4, 3):
        shutil.rmtree(home)
        sent.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        try:
            unpack_tar(sent, home, max_bytes=MIB)
        except ArchiveError:
            home.mkdir(exist_ok=True)
            continue
        if {path.name: path.read_bytes() for path in home.iterdir()} != right:
            wrong.append(place)
    assert wrong == []


def test_zeros_without_end_behind_the_files_are_left_in_time(tmp_path: Path) -> None:
    whole = tar(tmp_path / "a.tar", (member("out"), b"x")).read_bytes()
    sent = tmp_path / "b.tar.gz"
    sent.write_bytes(gzip.compress(whole + bytes(3 * MIB)))
    unpack_tar(sent, tmp_path / "home", max_bytes=4 * MIB)
    with pytest.raises(ArchiveError, match="more than 1 MiB behind its files"):
        unpack_tar(sent, tmp_path / "home", max_bytes=MIB)


def test_what_is_no_archive_or_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "no.tar").write_text("no archive")
    both = tar(tmp_path / "both.tar", (member("a"), b"x"), (member("a/b"), b"x"))
    for sent in (tmp_path / "no.tar", tmp_path / "none.tar", both):
        with pytest.raises(ArchiveError):
            unpack_tar(sent, tmp_path / "home", max_bytes=MIB)


def test_compressed_files_are_read_by_their_names(tmp_path: Path) -> None:
    for name, data in (("a", b"text"), ("a.gz", gzip.compress(b"text")), ("a.xz", lzma.compress(b"text"))):
        (tmp_path / name).write_bytes(data)
        assert read_compressed(tmp_path / name, 4) == b"text"
        with pytest.raises(ArchiveError, match="more than"):
            read_compressed(tmp_path / name, 3)


@pytest.mark.parametrize("name", ["a.gz", "a.xz"])
def test_broken_compression(tmp_path: Path, name: str) -> None:
    packed = gzip.compress(b"text" * 100) if name == "a.gz" else lzma.compress(b"text" * 100)
    for data in (b"text", packed[:-8], b""):
        (tmp_path / name).write_bytes(data)
        if data or name == "a.xz":
            with pytest.raises(ArchiveError, match="cannot be read"):
                read_compressed(tmp_path / name, MIB)
    with pytest.raises(ArchiveError, match="cannot be read"):
        read_compressed(tmp_path / "none", MIB)
