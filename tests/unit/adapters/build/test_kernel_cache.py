"""The cache of kernels: whole entries only, keys that cover what matters, eviction in order of use."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import threading
from pathlib import Path

import pytest

from bisector.adapters.build import kernel_cache
from bisector.adapters.build.kernel_cache import KernelCache, kernel_key, parse_facts
from bisector.adapters.system.files import sha256_of
from bisector.errors import DamagedArtefact, InfrastructureError, Interrupted
from tests.support.waiting import until

FACTS = {"binary": "b", "build_id": "00", "release": "6.1"}


def artefacts(folder: Path, size: int = 10) -> Path:
    folder.mkdir(parents=True)
    (folder / "image").write_bytes(b"x" * size)
    (folder / "config").write_text("CONFIG_A=y\n# CONFIG_B is not set\n")
    (folder / "build.log").write_text("ok\n")
    return folder


def key(n: int) -> str:
    return f"{n:064x}"


def test_an_entry_comes_back_as_it_went_in(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path / "kernels")
    assert cache.get(key(1)) is None
    cache.put(key(1), artefacts(tmp_path / "kernels" / "building-1"), FACTS)
    entry = cache.get(key(1))
    assert entry is not None
    assert (entry.facts["release"], entry.options()) == ("6.1", {"A": "y"})
    assert entry.image.read_bytes() == b"x" * 10
    assert entry.modules is None
    (entry.folder / "modules.tar.gz").write_bytes(b"modules")
    assert entry.modules == entry.folder / "modules.tar.gz"


def test_half_an_entry_is_none(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path)
    artefacts(tmp_path / key(1))  # image without kernel.json: not written by put
    assert cache.get(key(1)) is None
    (tmp_path / key(1) / "kernel.json").write_text("{")
    assert cache.get(key(1)) is None
    cache.put(key(1), artefacts(tmp_path / "building-1"), FACTS)
    assert cache.get(key(1)) is not None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("image", b"y" * 10),  # another kernel's, or a bit that a disk lost
        ("image", b"x" * 9),
        ("image", b""),
        ("image", None),
        ("modules.tar.gz", b"modulez"),
        ("modules.tar.gz", None),
        ("config", None),
        ("config", b"CONFIG_A=m\n"),
        ("kernel.json", b"{}"),
        ("kernel.json", b"[]"),
        ("kernel.json", b'{"binary": 1, "build_id": "00", "release": "6.1"}'),
        ("kernel.json", b'{"binary": "", "build_id": "00", "release": "6.1"}'),
        ("kernel.json", b'{"binary": "b", "release": "6.1"}'),  # what boots is proved by its build id
        ("kernel.json", b"\xff"),
        ("kernel.json", None),
    ],
)
def test_a_damaged_entry_is_none_and_is_replaced(tmp_path: Path, name: str, content: bytes | None) -> None:
    cache = KernelCache(tmp_path)

    def put() -> None:
        folder = artefacts(tmp_path / "building-1")
        (folder / "modules.tar.gz").write_bytes(b"modules")
        cache.put(key(1), folder, FACTS)

    put()
    file = tmp_path / key(1) / name
    assert cache.get(key(1)) is not None
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    assert cache.get(key(1)) is None
    put()
    assert cache.get(key(1)) is not None


def test_an_entry_that_cannot_be_read_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Path) -> str:
        raise OSError(5, "Input/output error")

    cache = KernelCache(tmp_path)
    cache.put(key(1), artefacts(tmp_path / "building"), FACTS)
    monkeypatch.setattr(kernel_cache, "sha256_of", fail)
    assert cache.get(key(1)) is None


def test_what_is_there_is_listed_latest_first_with_the_latest_count_of_the_compiler_cache(
    tmp_path: Path,
) -> None:
    cache = KernelCache(tmp_path)
    for n, hits in ((1, "70"), (2, "900"), (3, "20")):
        facts = {**FACTS, "hits": hits, "misses": hits}
        cache.put(key(n), artefacts(tmp_path / "building"), facts)
        os.utime(tmp_path / key(n), (n, n))
    found = cache.inventory()
    assert [kernel["key"] for kernel in found["kernels"]] == [key(3), key(2), key(1)]
    assert found["ccache"] == {"hits": 900, "misses": 900}


def test_logs_of_failed_builds_are_dropped_also_by_two_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = KernelCache(tmp_path)
    (tmp_path / "log").write_text("error")
    logs = [cache.keep_log(key(1), tmp_path / "log"), tmp_path / "failed" / "gone.log"]
    monkeypatch.setattr(KernelCache, "failed_logs", lambda _: logs)
    assert cache.drop_logs() > 0
    assert not logs[0].exists()


def test_only_the_logs_are_dropped_of_what_lies_beside_them(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path)
    (tmp_path / "log").write_text("error")
    kept = cache.keep_log(key(1), tmp_path / "log")
    noted = kept.with_name("why-it-failed.txt")
    noted.write_text("a person's words")
    assert cache.failed_logs() == [kept]
    cache.drop_logs()
    assert noted.exists()


def test_an_entry_of_an_earlier_version_is_taken_and_gets_checksums(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path)
    image = artefacts(tmp_path / key(1)) / "image"
    (tmp_path / key(1) / "kernel.json").write_text(json.dumps({**FACTS, "image": "9"}))
    assert cache.get(key(1)) is None  # its image has 10 bytes
    (tmp_path / key(1) / "kernel.json").write_text(json.dumps({**FACTS, "image": "10"}))
    assert cache.get(key(1)) is not None
    image.write_bytes(b"y" * 10)
    assert cache.get(key(1)) is None


def test_a_kernel_of_a_cache_that_can_only_be_read_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each trial on a host with a full disk, or a cache of somebody else's, would end."""

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    def full(*_: object) -> None:
        raise InfrastructureError("No space left on device")

    cache = KernelCache(tmp_path)
    artefacts(tmp_path / key(1))
    (tmp_path / key(1) / "kernel.json").write_text(json.dumps(FACTS))  # without checksums, as once
    with monkeypatch.context() as patch:
        patch.setattr(kernel_cache, "write_atomically", full)
        assert cache.get(key(1)) is not None
    monkeypatch.setattr(os, "utime", refuse)
    assert cache.get(key(1)) is not None


def test_a_cache_that_cannot_be_written_is_infrastructure(tmp_path: Path) -> None:
    (tmp_path / "kernels").write_text("a file")
    with pytest.raises(InfrastructureError, match="cannot write") as error:
        KernelCache(tmp_path / "kernels").put(key(1), artefacts(tmp_path / "building"), {})
    assert "PERFBISECT_CACHE_DIR" in error.value.cure


@pytest.mark.parametrize(
    ("listed", "read"),
    [
        (b"kernel/fork.c\n./include/config.h\n", {"kernel/fork.c", "./include/config.h"}),
        (b"kernel/fork.c\ninclude/\xff.h\n", {"kernel/fork.c", "include/\udcff.h"}),
        (b"include/linux/fs.h\n", None),  # every kernel compiles C files
        (b"", None),
        (None, None),
    ],
)
def test_a_list_of_sources_that_is_damaged_is_none(
    tmp_path: Path, listed: bytes | None, read: set[str] | None
) -> None:
    """Who believed it would call all commits irrelevant, and never measure the culprit."""
    folder = artefacts(tmp_path / "building")
    if listed is not None:
        (folder / "sources.gz").write_bytes(gzip.compress(listed))
    kernel = KernelCache(tmp_path).put(key(1), folder, FACTS)
    assert kernel.sources() == read
    (kernel.folder / "sources.gz").write_bytes(b"no archive")
    assert kernel.sources() is None


def test_a_second_build_has_its_folder_and_a_second_failure_its_log(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path / "kernels")
    assert cache.make_workspace() != cache.make_workspace()
    for number in (1, 2):
        (tmp_path / "log").write_text(f"error {number}")
        assert cache.keep_log(key(number), tmp_path / "log").read_text() == f"error {number}"


def test_a_kernel_from_elsewhere_replaces_a_damaged_one_and_no_whole_one(tmp_path: Path) -> None:
    cache, there = KernelCache(tmp_path / "here"), KernelCache(tmp_path / "there")
    for image in (b"", b"whole"):
        sent = there.put(key(1), artefacts(tmp_path / "there" / "building"), FACTS).folder
        if not image:
            cache.put(key(1), artefacts(tmp_path / "here" / "building"), FACTS).image.write_bytes(image)
        received = cache.receive(key(1), sent)
        assert received.image.read_bytes() == b"x" * 10 and cache.get(key(1)) is not None


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path)
    for n in range(4):
        cache.put(key(n), artefacts(tmp_path / "building", size=100_000), FACTS)
        os.utime(tmp_path / key(n), (n + 1, n + 1))
    cache.get(key(0))  # used just now
    cache.shrink(250_000, lambda: {key(1)})
    assert [entry.key for entry in cache.entries()] == [key(1), key(0)]


def test_no_more_is_removed_than_must_be(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path)
    for n in range(3):
        cache.put(key(n), artefacts(tmp_path / "building", size=100_000), FACTS)
        os.utime(tmp_path / key(n), (n + 1, n + 1))
    sizes = [kernel["bytes"] for kernel in cache.inventory()["kernels"]]
    asked: list[str] = []

    def keep() -> set[str]:
        asked.append("which bisections need kernels")  # of the database
        return set()

    assert cache.shrink(sum(sizes), keep) == 0
    assert not asked
    assert cache.shrink(sum(sizes) - sizes[-1], keep) == sizes[-1]
    assert [entry.key for entry in cache.entries()] == [key(1), key(2)]


@pytest.mark.parametrize("name", ["building-1", "a" * 63, "g" * 64])
def test_what_another_process_is_receiving_is_no_entry_yet(tmp_path: Path, name: str) -> None:
    """It has all that an entry has. Removed in the middle, the kernel would be built once more."""
    received(tmp_path / name)
    cache = KernelCache(tmp_path)
    assert cache.entries() == []
    assert cache.shrink(0, set) == 0
    assert (tmp_path / name / "image").exists()


def test_a_kernel_that_another_process_removes_meanwhile_is_just_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = KernelCache(tmp_path)
    for n in (1, 2):
        cache.put(key(n), artefacts(tmp_path / f"new{n}"), {"binary": "b", "release": "6", "build_id": ""})
    listed = list(cache.folder.glob("*"))
    cache.shrink(0, lambda: {key(2)})
    with monkeypatch.context() as patch:
        patch.setattr(Path, "glob", lambda *_: iter(listed))
        assert [entry.key for entry in cache.entries()] == [key(2)]
    (cache.folder / key(2) / "image").unlink()
    (cache.folder / key(2) / "image").symlink_to("gone")
    assert cache.inventory()["bytes"] > 0


def test_the_largest_build_of_a_recipe_tells_what_one_from_nothing_compiles(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path)
    for n, (recipe, compiled) in enumerate([("small", "680"), ("small", "12"), ("guest", "1120")]):
        facts = {**FACTS, "recipe": recipe, "compiled": compiled}
        cache.put(key(n), artefacts(tmp_path / "building"), facts)
    assert [cache.most_compiled(recipe) for recipe in ("small", "guest", "old")] == [680, 1120, 0]


def received(folder: Path, **facts: str) -> Path:
    """Return what is sent as a kernel: with the checksum of each file, and with other facts."""
    sent = artefacts(folder)
    sums = {f"sha256.{path.name}": sha256_of(path) for path in sent.iterdir()}
    (sent / "kernel.json").write_text(json.dumps({**FACTS, **sums, **facts}))
    return sent


def test_a_kernel_of_another_host_is_taken(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path / "kernels")
    (tmp_path / "kernels").mkdir()
    facts = {"compiled": "12", "seconds": "1.5e+2", "layout": "3", "image": "10"}
    cache.receive(key(1), received(tmp_path / "sent", **facts))
    assert cache.get(key(1)) is not None


@pytest.mark.parametrize(
    "name",
    ["/dev/zero", "../secret", "..", ".", "", "folder", "folder/config", "link", "pipe", "absent", "a\0b"],
)
def test_only_files_of_the_folder_are_read_whatever_the_facts_name(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checksum of /dev/zero would never be ready."""
    (tmp_path / "secret").write_text("secret")
    sent = received(tmp_path / "sent", **{f"sha256.{name}": hashlib.sha256(b"secret").hexdigest()})
    (sent / "folder").mkdir()
    (sent / "folder" / "config").write_text("secret")
    (sent / "link").symlink_to("../secret")
    os.mkfifo(sent / "pipe")
    read: list[str] = []

    def note(path: Path) -> str:
        read.append(path.name)
        return (
            sha256_of(path) if path.parent == sent and path.name in ("image", "config", "build.log") else "0"
        )

    monkeypatch.setattr(kernel_cache, "sha256_of", note)
    with pytest.raises(DamagedArtefact, match="is none, so it is built"):
        KernelCache(tmp_path / "kernels").receive(key(1), sent)
    assert not read
    (tmp_path / "kernels").mkdir()
    sent.rename(tmp_path / "kernels" / key(1))
    assert KernelCache(tmp_path / "kernels").get(key(1)) is None
    assert not read


@pytest.mark.parametrize("more", ["modules.tar.gz", ".hidden", "folder/", "link@"])
def test_all_that_came_has_a_checksum(tmp_path: Path, more: str) -> None:
    sent = received(tmp_path / "sent")
    if more.endswith("/"):
        (sent / more).mkdir()
    elif more.endswith("@"):
        (sent / more).symlink_to("image")
    else:
        (sent / more).write_text("more")
    with pytest.raises(DamagedArtefact):
        KernelCache(tmp_path / "kernels").receive(key(1), sent)


@pytest.mark.parametrize("name", ["image", "config"])
def test_what_is_needed_is_a_file(tmp_path: Path, name: str) -> None:
    cache = KernelCache(tmp_path)
    cache.put(key(1), artefacts(tmp_path / "building"), FACTS)
    file = tmp_path / key(1) / name
    facts = json.loads((tmp_path / key(1) / "kernel.json").read_text())
    del facts[f"sha256.{name}"]
    (tmp_path / key(1) / "kernel.json").write_text(json.dumps(facts))
    assert cache.get(key(1)) is not None
    file.unlink()
    file.mkdir()
    assert cache.get(key(1)) is None


@pytest.mark.parametrize(
    "fact", ["compiled", "hits", "misses", "layout", "seconds", "text", "data", "bss", "image"]
)
@pytest.mark.parametrize("value", ["x", "-1", "nan", "9" * 5000, "1 2", "\u0661", "0x10", "1_0"])
def test_what_is_no_number_is_neither_taken_nor_read_as_one(tmp_path: Path, fact: str, value: str) -> None:
    cache = KernelCache(tmp_path)
    with pytest.raises(DamagedArtefact):
        cache.receive(key(1), received(tmp_path / "sent", **{"recipe": "small", "misses": "9", fact: value}))
    (tmp_path / "sent").rename(tmp_path / key(1))  # an earlier version took it
    cache.put(key(2), artefacts(tmp_path / "building"), {**FACTS, "recipe": "small", "compiled": "7"})
    assert cache.most_compiled("small") == 7
    assert {kernel["layout"] for kernel in cache.inventory()["kernels"]} == {0}
    assert cache.get(key(1)) is None


def test_the_key_covers_tree_plan_and_toolchain() -> None:
    keys = [
        kernel_key("tree", "plan", "gcc 12"),
        kernel_key("tree2", "plan", "gcc 12"),
        kernel_key("tree", "plan2", "gcc 12"),
        kernel_key("tree", "plan", "gcc 13"),
    ]
    assert len(set(keys)) == 4
    assert keys[0] == kernel_key("tree", "plan", "gcc 12")


def test_facts_are_lines() -> None:
    assert parse_facts("a=1\nnoise\nb=x=y \n") == {"a": "1", "b": "x=y"}


def test_a_whole_entry_is_not_replaced_for_others_may_read_it(tmp_path: Path) -> None:
    """Two processes that built one kernel at the same time; the first reads what it put there."""
    cache = KernelCache(tmp_path / "kernels")
    first = cache.put(key(1), artefacts(tmp_path / "kernels" / "building-1"), FACTS)
    with first.config.open() as reading:
        inode = first.folder.stat().st_ino
        again = cache.put(key(1), artefacts(tmp_path / "kernels" / "building-2"), FACTS)
        assert again.folder.stat().st_ino == inode
        assert reading.read() == again.config.read_text()


def test_one_process_at_a_time_makes_an_entry(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path)
    told: list[str] = []
    entered = threading.Event()

    def other() -> None:
        with cache.making(key(1), told.append, lambda: False):
            entered.set()

    with cache.making(key(1), told.append, lambda: False):
        thread = threading.Thread(target=other)
        thread.start()
        until(lambda: told == ["another process builds this kernel"], 10)
        assert not entered.is_set()
        with pytest.raises(Interrupted), cache.making(key(1), lambda text: None, lambda: True):
            pass
    thread.join(10)
    assert entered.is_set()
