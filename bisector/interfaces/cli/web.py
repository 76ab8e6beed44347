"""`perfbisect web`: the bisections of a database over HTTP."""

from __future__ import annotations

import contextlib
import signal
import socket
from typing import Annotated

import typer

from bisector.errors import RequestError
from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.arguments import number_options

DEFAULT_PORT = 8470
"""The default port: any would do that IANA has not registered for something else."""
_STOP_SECONDS = 5
"""How long answers under way may take once the server is asked to end; streams end at once."""
_IDLE_SECONDS = 15
"""A connection without a request is kept open for so long: longer than Prometheus' usual pause."""
_MOST_CONNECTIONS = 500
"""Connections at once; more are refused. Chosen: room for `authority.STREAMS` and for a lab's other
requests."""
DATABASE_SECONDS = 20.0
"""How long an answer waits for a database server that is away, as long as a new command does: a restart takes
a few seconds, and browsers and proxies give up after a minute."""
PROXIES = "127.0.0.1"
"""Whose X-Forwarded-For is believed, and, by `visitors`, whose header with a user's name."""


def web(
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, number_options.whole(0, 65_535, "The port; 0: any that is free.")] = DEFAULT_PORT,
) -> None:
    """Serve the bisections of the database to other machines, until stopped with Ctrl-C or SIGTERM.

    Pages are at /, REST is below /api/v1 (its description: /api/v1/openapi.json), numbers for Prometheus at
    /metrics. All need a token (perfbisect token add); a browser is asked for it. It speaks plain HTTP, and
    only to this machine unless told otherwise: TLS is a reverse proxy's task. What requests may name is
    listed below [web] in perfbisect.toml. Workers execute what is started ('perfbisect worker').

    Examples:

      perfbisect web

      perfbisect web --port 8080
    """
    import uvicorn

    from bisector.interfaces.web.guard import is_loopback
    from bisector.interfaces.web.http_server import HttpConnection, HttpServer
    from bisector.interfaces.web.web_application import make_application

    wiring = options.make_wiring()
    wiring.patience = DATABASE_SECONDS
    wiring.coordinator.now()  # the database answers, and has the tables of this version
    listening = listen(host, port)
    app = make_application(wiring)
    config = uvicorn.Config(
        app,
        http=HttpConnection,
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=options.global_options().debug,
        server_header=False,
        forwarded_allow_ips=PROXIES,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    name = f"[{host}]" if ":" in host else host
    output.print_note(f"serving http://{name}:{listening.getsockname()[1]}/; Ctrl-C ends it")
    if not is_loopback(host):
        output.print_note(
            "warning: other machines reach this address without TLS, and see the tokens that they send; "
            "have a reverse proxy do TLS (docs/how-to/serve.md)"
        )
    signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn ends, and then raises it once more
    with contextlib.suppress(KeyboardInterrupt):
        HttpServer(config, app.state.server.stopping.set).run(sockets=[listening])
    output.print_note("stopped")


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Raises RequestError: the address is not this machine's, or is taken."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        listening = socket.create_server(found[0][4][:2], family=found[0][0])
        # Its connections inherit it. asyncio sets it only where a socket names its protocol; without it each
        # answer waits for the client's delayed acknowledgement of its head, 40 ms.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is no address"
        raise RequestError(
            f"cannot listen on {host[:100]} port {port}: {reason}",
            cure="name an address of this machine, and a port that is free: --host, --port",
        ) from error
