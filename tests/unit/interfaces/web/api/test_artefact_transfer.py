"""Artefacts as a server gives and takes them: what no well-behaved client sends."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from bisector.adapters.artefacts.exchange import make_workspace
from bisector.app.wiring import Wiring
from bisector.interfaces.web.web_application import API, MAX_BODY_BYTES
from bisector.model import artefacts
from bisector.model.access import ROLES, Role
from bisector.model.artefacts import digest_header
from tests.support.servers.web import make_tokens, serving, wiring_in
from tests.support.waiting import until

ONE = "/artefacts/kernel/0123"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("web")
    (folder / "store").mkdir()
    return folder


@pytest.fixture(scope="module")
def wiring(place: Path) -> Wiring:
    settings = wiring_in(place).settings.model_copy(update={"artefacts": str(place / "store")})
    return Wiring(settings)


@pytest.fixture(scope="module")
def secrets(wiring: Wiring) -> dict[Role, str]:
    return make_tokens(wiring)


@pytest.fixture(scope="module")
def client(wiring: Wiring, secrets: dict[Role, str]) -> Iterator[httpx.Client]:
    with serving(wiring) as address:
        headers = {"Authorization": f"Bearer {secrets['worker']}"}
        with httpx.Client(base_url=address + API, headers=headers, timeout=60) as made:
            yield made


def digest(content: bytes) -> dict[str, str]:
    return {"Repr-Digest": digest_header(hashlib.sha256(content).hexdigest())}


def files(place: Path) -> list[Path]:
    return [path for path in (place / "store").rglob("*") if path.is_file()]


def test_a_body_larger_than_that_of_any_other_request_is_kept(client: httpx.Client, place: Path) -> None:
    content = bytes(20 * MAX_BODY_BYTES)
    answer = client.put("/artefacts/boot/x@b", content=content, headers=digest(content))
    assert answer.status_code == 201
    found = client.get("/artefacts/boot/x@b")
    assert (found.content, found.headers["Repr-Digest"]) == (content, digest(content)["Repr-Digest"])
    until(lambda: not list((place / "cache" / "artefacts").iterdir()), 30)  # nothing temporary is left


def test_what_a_killed_server_left_is_removed_and_nothing_of_a_living_one(
    client: httpx.Client, place: Path
) -> None:
    left = """import os, pathlib, signal, sys
from bisector.adapters.artefacts.exchange import make_workspace
folder = make_workspace(pathlib.Path(sys.argv[1]))
(folder / "content").write_text("x")
os.kill(os.getpid(), signal.SIGKILL)
"""
    work = place / "cache" / "artefacts"
    subprocess.run([sys.executable, "-c", left, work], check=False, timeout=60)
    living = make_workspace(work)
    assert len(list(work.iterdir())) == 2
    client.put(ONE, content=b"a kernel", headers=digest(b"a kernel"))
    assert list(work.iterdir()) == [living]
    shutil.rmtree(living)


@pytest.mark.parametrize("headers", [{}, digest(b"other"), {"Repr-Digest": "md5=:AAAA:"}])
def test_a_body_that_is_not_what_was_sent_is_not_kept(
    client: httpx.Client, place: Path, headers: dict[str, str]
) -> None:
    before = files(place)
    answer = client.put(ONE, content=b"a kernel", headers=headers)
    assert answer.status_code == 400 and "Repr-Digest" in answer.json()["detail"]
    assert files(place) == before
    assert list((place / "cache" / "artefacts").iterdir()) == []


def test_a_body_of_too_many_bytes_is_refused_before_its_end(
    client: httpx.Client, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artefacts, "MAX_BYTES", {"kernel": 100_000})
    answer = client.put(ONE, content=bytes(200_000), headers=digest(bytes(200_000)))
    assert answer.status_code == 400 and "more than" in answer.json()["detail"]


@pytest.mark.parametrize(
    "path",
    [
        "/artefacts/kernel/..%2f..%2fetc%2fpasswd",
        "/artefacts/kernel/.hidden",
        "/artefacts/kernel/%00",
        "/artefacts/kernel/a%0a",
        "/artefacts/kernel/" + "x" * 300,
        "/artefacts/secret/0123",
    ],
)
def test_what_names_no_artefact_is_refused(client: httpx.Client, place: Path, path: str) -> None:
    before = files(place)
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        assert client.request(method, path).status_code in (400, 404, 422)
    assert files(place) == before


def test_a_damaged_artefact_is_not_sent(client: httpx.Client, place: Path) -> None:
    client.put(ONE, content=b"a kernel", headers=digest(b"a kernel"))
    (path,) = [path for path in files(place) if path.parent.name == "0123"]
    path.write_bytes(b"a kernal")
    answer = client.get(ONE)
    assert answer.status_code == 503 and str(path) in answer.json()["detail"]
    assert client.get(ONE).status_code == 404


def test_a_server_without_a_store_says_so(tmp_path: Path) -> None:
    wiring = wiring_in(tmp_path)
    with serving(wiring) as address:
        headers = {"Authorization": f"Bearer {make_tokens(wiring)['worker']}"}
        answer = httpx.get(f"{address}{API}/artefacts", headers=headers, timeout=60)
    assert answer.status_code == 404 and "no artefact store" in answer.json()["detail"]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/artefacts", 204),
        ("HEAD", "/artefacts/kernel/roles", 200),
        ("GET", "/artefacts/kernel/roles", 200),
        ("PUT", "/artefacts/kernel/roles", 201),
        ("DELETE", "/artefacts/kernel/roles", 204),
    ],
)
def test_only_a_worker_may_use_artefacts(
    client: httpx.Client,
    place: Path,
    secrets: dict[Role, str],
    role: Role,
    method: str,
    path: str,
    status: int,
) -> None:
    """Whoever puts or removes a kernel decides what boots on the machines of others."""
    assert client.put("/artefacts/kernel/roles", content=b"good", headers=digest(b"good")).status_code == 201
    headers = {"Authorization": f"Bearer {secrets[role]}", **digest(b"evil")}
    answer = client.request(method, path, content=b"evil" if method == "PUT" else None, headers=headers)
    if role == "worker":
        assert answer.status_code == status
        return
    assert answer.status_code == 403
    if method != "HEAD":
        assert "needs 'worker'" in answer.json()["detail"]
        assert "token add NAME --role worker" in answer.json()["cure"]
    assert client.get("/artefacts/kernel/roles").content == b"good"
