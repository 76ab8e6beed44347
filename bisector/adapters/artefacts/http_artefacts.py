"""Artefacts behind `perfbisect web`: each is a body, its SHA-256 is in the header Repr-Digest (RFC 9530)."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import httpx

from bisector.adapters.system.files import os_errors_reported, sha256_of
from bisector.errors import DamagedArtefact, InfrastructureError
from bisector.model.artefacts import Artefact, digest_header
from bisector.model.printable import printable

_ARTEFACTS = "/artefacts"

_PAUSES_SECONDS = (0.5, 2.0, 8.0)
"""Pauses between tries: a server that restarts is back in a few seconds. The last one also limits how long to
wait where the server says when to try again."""
_TIMEOUT = httpx.Timeout(60.0, connect=10.0)
"""Timeout of one read or write: the server may verify some GiB on disk before it sends the first byte."""
_AGAIN = frozenset({429, 500, 502, 503, 504})
_MAX_WORDS = 500
"""Characters of what a server says of an error."""

T = TypeVar("T")


class HttpArtefacts:
    """store_ports.ArtefactStore over HTTP. address: of the server; token: of the role 'worker'."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address.rstrip("/")
        self._client = httpx.Client(
            base_url=f"{self._address}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=_TIMEOUT,
        )

    def check(self) -> None:
        """Raise InfrastructureError unless artefacts can be put and read now."""
        self._tried(lambda: self._answered(self._client.get(_ARTEFACTS)))

    def has(self, artefact: Artefact) -> bool:
        """Return whether there is one."""

        def ask() -> bool:
            answer = self._client.head(_path(artefact))
            return answer.status_code != httpx.codes.NOT_FOUND and self._answered(answer)

        return self._tried(ask)

    def put(self, artefact: Artefact, file: Path) -> str:
        """Send a file; return its SHA-256."""
        with os_errors_reported(f"{file} cannot be read"):
            checksum = sha256_of(file)
        headers = {"Repr-Digest": digest_header(checksum), "Content-Type": "application/x-tar"}

        def send() -> bool:
            with os_errors_reported(f"{file} cannot be read"), file.open("rb") as content:
                return self._answered(self._client.put(_path(artefact), content=content, headers=headers))

        self._tried(send)
        return checksum

    def get(self, artefact: Artefact, target: Path) -> bool:
        """Write an artefact to a new file; False where there is none. Raises DamagedArtefact."""

        def receive() -> bool:
            with self._client.stream("GET", _path(artefact)) as answer:
                if answer.status_code == httpx.codes.NOT_FOUND:
                    return False
                if not answer.is_success:
                    answer.read()
                self._answered(answer)
                with os_errors_reported(f"{target} cannot be written"):
                    checksum = _save(answer, target, artefact.max_bytes)
                if digest_header(checksum) != answer.headers.get("Repr-Digest", ""):
                    target.unlink()
                    raise DamagedArtefact(
                        f"{self._address}: the {artefact} did not arrive as it was sent",
                        details=f"SHA-256 {checksum}",
                        cure="look at the network, and at what is between here and the server",
                    )
            return True

        return self._tried(receive)

    def set_aside(self, artefact: Artefact) -> None:
        """Withdraw an artefact, so that nobody is given it any more."""
        self._tried(lambda: self._answered(self._client.delete(_path(artefact))))

    def _tried(self, ask: Callable[[], T]) -> T:
        """Return an answer; ask again while the server or the network fails."""
        for pause in (*_PAUSES_SECONDS, None):
            try:
                return ask()
            except _Again as error:
                if pause is None:
                    raise error.cause from error
                time.sleep(min(max(pause, error.wait), _PAUSES_SECONDS[-1]))
            except httpx.HTTPError as error:
                if pause is None:
                    raise InfrastructureError(
                        f"the artefact store {self._address} does not answer: {_words(error)}",
                        cure="look at 'perfbisect web' there, and at the setting 'artefacts'",
                    ) from error
                time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _answered(self, answer: httpx.Response) -> bool:
        """Return True for a success; raise what any other answer means."""
        if answer.is_success:
            return True
        try:
            problem = answer.json()
        except (ValueError, httpx.ResponseNotRead):
            problem = None
        fields = problem if isinstance(problem, dict) else {}
        words = printable(str(fields.get("detail") or answer.reason_phrase))[:_MAX_WORDS]
        failure = InfrastructureError(
            f"the artefact store {self._address} refuses: {words} ({answer.status_code})",
            cure=printable(str(fields.get("cure") or "look at 'perfbisect web' there"))[:_MAX_WORDS],
        )
        if answer.status_code in _AGAIN:
            wait = answer.headers.get("Retry-After", "")
            raise _Again(failure, float(wait) if wait.isdecimal() else 0.0)
        raise failure


class _Again(Exception):
    """The server may answer in a moment. wait: seconds that it asks for."""

    def __init__(self, cause: InfrastructureError, wait: float) -> None:
        super().__init__(str(cause))
        self.cause, self.wait = cause, wait


def _path(artefact: Artefact) -> str:
    return f"{_ARTEFACTS}/{artefact.kind}/{artefact.key}"


def _save(answer: httpx.Response, target: Path, limit: int) -> str:
    """Write a body to a file; return its SHA-256. Raises DamagedArtefact for more than `limit` bytes."""
    digest, received = hashlib.sha256(), 0
    with target.open("wb") as file:
        for block in answer.iter_raw(1 << 20):
            received += len(block)
            if received > limit:
                raise DamagedArtefact(f"{answer.url} sends more than {limit >> 20} MiB")
            digest.update(block)
            file.write(block)
    return digest.hexdigest()


def _words(error: httpx.HTTPError) -> str:
    return printable(str(error) or type(error).__name__)[:_MAX_WORDS]
