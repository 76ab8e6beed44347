"""A real `perfbisect web` on loopback, in a thread of the test."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from bisector.app.upkeep import tokens
from bisector.app.wiring import Wiring
from bisector.interfaces.cli.web import listen
from bisector.interfaces.web.http_server import HttpConnection, HttpServer
from bisector.interfaces.web.web_application import make_application
from bisector.model.access import ROLES, Role
from bisector.schemas.settings import Settings
from bisector.schemas.web_settings import WebSettings

_HANG_SECONDS = 30.0


def wiring_in(folder: Path, web: WebSettings | None = None) -> Wiring:
    """Return the wiring of a state folder below `folder`."""
    return Wiring(
        Settings(
            state_dir=folder / "state",
            cache_dir=folder / "cache",
            lock_dir=folder / "locks",
            web=web,
        )
    )


def make_tokens(wiring: Wiring) -> dict[Role, str]:
    """Return the secret of a token of each role, which is called by it."""
    return {role: tokens.add(wiring, role, role, None, "the test")[1] for role in ROLES}


@contextmanager
def serving(wiring: Wiring) -> Iterator[str]:
    """Give the address of a server on the database of a wiring."""
    listening = listen("127.0.0.1", 0)
    app = make_application(wiring)
    config = uvicorn.Config(
        app,
        http=HttpConnection,
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    server = HttpServer(config, app.state.server.stopping.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    end = time.monotonic() + _HANG_SECONDS
    while not server.started:
        assert time.monotonic() < end, "the server does not start"
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(_HANG_SECONDS)
        assert not thread.is_alive()
