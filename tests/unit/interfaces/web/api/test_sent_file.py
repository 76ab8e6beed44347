"""No temporary file and no slot outlives its request, whatever a client asks and however it ends.

A real server; with it what `measurement_routes` holds while an archive arrives.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from bisector.app.operations.local_operations import LocalOperations
from bisector.interfaces.web import authority, guard
from bisector.interfaces.web.web_application import API
from bisector.model.access import Role
from tests.support.fake_bisection import store_bisections
from tests.support.servers.web import make_tokens, serving, wiring_in
from tests.support.waiting import until

ARCHIVE = f"{API}/bisections/fake-old/archive"
LARGE_BYTES = 30 << 20
"""More than the buffers of a connection on loopback hold."""


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[Role, str]:
    store_bisections(tmp_path, monkeypatch)
    return make_tokens(wiring_in(tmp_path))


@pytest.fixture
def url(tmp_path: Path, secrets: dict[Role, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(authority, "AT_ONCE", 1)
    monkeypatch.setattr(authority, "DOWNLOADS", 1)
    monkeypatch.setattr(authority, "DOWNLOADS_OF_ONE", 1)
    with serving(wiring_in(tmp_path)) as address:
        yield address


def temporary(place: Path) -> list[Path]:
    return list((place / "cache").glob("artefacts/*"))


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


@pytest.mark.parametrize("asked", ["x", "bytes=99999999999999-", "bytes=0-3", "bytes=0-1,4-5", "bytes=5-1"])
def test_a_range_is_not_read(url: str, secrets: dict[Role, str], tmp_path: Path, asked: str) -> None:
    for header in ("Range", "range"):
        answer = httpx.get(url + ARCHIVE, headers={**bearer(secrets["read"]), header: asked}, timeout=60)
        assert answer.status_code == 200 and answer.content[:2] == b"\x1f\x8b"
        until(lambda: not temporary(tmp_path), 30)


def test_a_client_that_reads_nothing_keeps_neither_the_file_nor_the_slot(
    url: str, secrets: dict[Role, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def export(operations: LocalOperations, identity: str | None, to: Path) -> dict[str, int]:
        to.write_bytes(os.urandom(1 << 20) * (LARGE_BYTES >> 20))
        return {"files": 0}

    monkeypatch.setattr(LocalOperations, "export", export)
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as stalling:
        lines = (
            f"GET {ARCHIVE} HTTP/1.1",
            f"Host: {host}",
            f"Authorization: Bearer {secrets['read']}",
            "",
            "",
        )
        stalling.sendall("\r\n".join(lines).encode())
        until(lambda: temporary(tmp_path) != [], 30)
        assert stalling.recv(12) == b"HTTP/1.1 200"
        second = httpx.get(url + ARCHIVE, headers=bearer(secrets["operate"]), timeout=60)
        assert second.status_code == 429 and "busy with files to send" in second.json()["detail"]
        assert len(temporary(tmp_path)) == 1
        monkeypatch.setattr(guard, "_SILENT_SECONDS", 0.2)
        stalling.recv(4 << 20)  # the next part has the shorter limit
        until(lambda: not temporary(tmp_path), 60)
        monkeypatch.setattr(guard, "_SILENT_SECONDS", 30.0)
    whole = httpx.get(url + ARCHIVE, headers=bearer(secrets["operate"]), timeout=60)
    assert len(whole.content) == LARGE_BYTES


def test_nobody_waits_for_an_archive_that_arrives_slowly(
    url: str, secrets: dict[Role, str], tmp_path: Path
) -> None:
    go_on, answers = threading.Event(), list[int]()
    headers = bearer(secrets["operate"])

    def slow() -> Iterator[bytes]:
        yield b"x" * 100
        go_on.wait(60)
        yield b"x"

    def send() -> None:
        answer = httpx.post(f"{url}{API}/imports", content=slow(), headers=headers, timeout=60)
        answers.append(answer.status_code)

    sender = threading.Thread(target=send)
    sender.start()
    until(lambda: temporary(tmp_path) != [], 30)
    assert httpx.post(f"{url}{API}/imports", content=b"x", headers=headers, timeout=60).status_code == 429
    for _ in range(2):
        exported = httpx.get(url + ARCHIVE, headers=bearer(secrets["read"]), timeout=60)
        assert exported.status_code == 200
        until(lambda: len(temporary(tmp_path)) == 1, 30)
    go_on.set()
    sender.join(60)
    assert answers == [400]  # it was no archive
