"""The connection to a `perfbisect web`: requests with the user's token, and the server's errors as ours."""

from __future__ import annotations

import hashlib
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import httpx

from bisector.adapters.system.files import sha256_of
from bisector.errors import (
    ExitCode,
    InfrastructureError,
    Interrupted,
    NotFound,
    PerfbisectError,
    RequestError,
)
from bisector.model.artefacts import digest_header
from bisector.ports import Progress

_API = "/api/v1"
_CONNECT_SECONDS, _ANSWER_SECONDS = 10.0, 120.0
"""Timeouts of connecting and of an answer: for `start`, git reads a history, which takes it up to a
minute."""
_SILENT_SECONDS = 2.0
"""After so long a user wonders whether anything happens (Nielsen 1993: attention lasts some seconds)."""
_BLOCK_BYTES = 1 << 20
"""Bytes that are read and written to a file at once: chosen."""
_MOST_WAITS = 5
"""Retries of a request that the server has put off (429)."""
_LONGEST_WAIT = 30.0
"""Seconds, whatever the server asks for: chosen, so that a command with all its retries ends within
minutes."""
_LOCAL = ("localhost", "127.0.0.1", "::1")


class ServerConnection:
    """Requests to one server."""

    def __init__(self, url: str, token: str, note: Progress = lambda text: None) -> None:
        """note: called with what a user should know."""
        self.url = url.rstrip("/")
        self._note = note
        if url.startswith("http://") and httpx.URL(url).host not in _LOCAL:
            note(f"warning: {self.url} is asked without TLS: others on the way can read the token")
        self._client = httpx.Client(
            base_url=self.url + _API,
            headers={"Authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS),
            verify=ssl.create_default_context(),  # the authorities that this machine trusts
        )

    def ask(
        self, method: str, path: str, *, body: object = None, **parameters: str | int | bool | None
    ) -> Any:  # noqa: ANN401 - JSON values
        """Return the JSON values of an answer. Raises the server's error, InfrastructureError."""
        answer = self._answer(method, path, body, parameters)
        try:
            return answer.json()
        except (ValueError, RecursionError) as error:
            raise self._not_perfbisect(answer) from error

    def download(self, path: str, to: Path) -> Mapping[str, str]:
        """Write the body of an answer to a file, verified; return the headers. Raises as `ask`."""
        digest = hashlib.sha256()
        try:
            with self._opened(path) as answer, to.open("wb") as file:
                for block in answer.iter_raw(_BLOCK_BYTES):
                    digest.update(block)
                    file.write(block)
        except httpx.TransportError as error:
            raise self._unreachable(error) from error
        if answer.headers.get("Repr-Digest") != digest_header(digest.hexdigest()):
            raise InfrastructureError(f"{self.url}: the file did not arrive whole", cure="try again")
        return answer.headers

    def upload(self, path: str, file: Path) -> Any:  # noqa: ANN401 - JSON values
        """Send a file; return the JSON values of the answer. Raises as `ask`."""
        headers = {"Repr-Digest": digest_header(sha256_of(file)), "Content-Type": "application/gzip"}
        for attempt in range(_MOST_WAITS + 1):
            with file.open("rb") as content:
                try:
                    with self._telling():
                        answer = self._client.post(path, content=content, headers=headers)
                except httpx.TransportError as error:
                    raise self._unreachable(error) from error
            if not self._is_put_off(answer, attempt):
                break
        if not answer.is_success:
            raise self._error_of(answer)
        return answer.json()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Report that an answer takes long, if it does."""
        text = f"waiting for the server {self.url}; Ctrl-C ends the waiting"
        timer = threading.Timer(_SILENT_SECONDS, self._note, [text])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def text(self, path: str, **parameters: str | int | bool | None) -> str:
        """Return the text of an answer. Raises as `ask`."""
        return self._answer("GET", path, None, parameters).content.decode(errors="replace")

    @contextmanager
    def stream(self, path: str) -> Iterator[Iterator[tuple[str, dict[str, Any]]]]:
        """Give the events of a stream: kind, and JSON values. Raises as `ask`, also while it is read."""
        try:
            with self._opened(path, tells=False) as answer:
                yield _events(answer.iter_lines())
        except (httpx.TransportError, ValueError) as error:
            raise self._unreachable(error) from error

    def _answer(
        self, method: str, path: str, body: object, parameters: Mapping[str, str | int | bool | None]
    ) -> httpx.Response:
        given = {name: value for name, value in parameters.items() if value is not None}
        for attempt in range(_MOST_WAITS + 1):
            try:
                with self._telling():
                    answer = self._client.request(method, path, params=given, json=body)
            except httpx.TransportError as error:
                raise self._unreachable(error) from error
            if not self._is_put_off(answer, attempt):
                break
        if answer.is_success:
            return answer
        raise self._error_of(answer)

    @contextmanager
    def _opened(self, path: str, *, tells: bool = True) -> Iterator[httpx.Response]:
        """Give an answer whose body is still to be read. tells: whether to report it if it takes long.

        Raises the error that the server reports, and httpx.TransportError.
        """
        for attempt in range(_MOST_WAITS + 1):
            with self._telling() if tells else nullcontext(), self._client.stream("GET", path) as answer:
                if answer.is_success:
                    yield answer
                    return
                answer.read()
            if not self._is_put_off(answer, attempt):
                raise self._error_of(answer)

    def _is_put_off(self, answer: httpx.Response, attempt: int) -> bool:
        """Return whether to ask again, after the time that the server asks for. attempt: from 0 on."""
        if answer.status_code != httpx.codes.TOO_MANY_REQUESTS or attempt == _MOST_WAITS:
            return False
        wait = answer.headers.get("Retry-After", "1")
        time.sleep(min(float(wait) if wait.isdecimal() else 1.0, _LONGEST_WAIT))
        return True

    def _error_of(self, answer: httpx.Response) -> PerfbisectError:
        try:
            problem = answer.json()
            return error_of(problem, missing=answer.status_code == httpx.codes.NOT_FOUND)
        except (ValueError, KeyError, TypeError, RecursionError):
            return self._not_perfbisect(answer)

    def _not_perfbisect(self, answer: httpx.Response) -> InfrastructureError:
        return InfrastructureError(
            f"{self.url} does not answer as a 'perfbisect web': status {answer.status_code}",
            details=answer.text[:200],
            cure="check the address: --server, PERFBISECT_SERVER or 'server' in perfbisect.toml",
        )

    def _unreachable(self, error: Exception) -> InfrastructureError:
        return ServerAway(
            f"the server {self.url} cannot be reached: {error or type(error).__name__}",
            cure="check the address (--server, PERFBISECT_SERVER, 'server' in perfbisect.toml), and that "
            "'perfbisect web' runs there",
        )


class ServerAway(InfrastructureError):
    """The server does not answer, or breaks off."""


def error_of(problem: Mapping[str, Any], *, missing: bool = False) -> PerfbisectError:
    """Return the error of a problem document. Raises KeyError, TypeError: it is none of ours."""
    code = int(problem["exit_code"])
    kinds: dict[int, type[PerfbisectError]] = {
        ExitCode.WRONG_REQUEST: NotFound if missing else RequestError,
        ExitCode.INTERRUPTED: Interrupted,
    }
    kind = kinds.get(code, InfrastructureError)
    return kind(str(problem["detail"]), details=str(problem["details"]), cure=str(problem["cure"]))


def _events(lines: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events of a text/event-stream. Raises ValueError."""
    kind, data = "", ""
    for line in lines:
        name, _, value = line.partition(":")
        if name == "event":
            kind = value.strip()
        elif name == "data":
            data += value
        elif not line and kind:
            yield kind, json.loads(data)
            kind, data = "", ""
