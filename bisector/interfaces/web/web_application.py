"""The ASGI application: the pages, what is below /api/v1, /healthz and /metrics, and what guards them."""

from __future__ import annotations

import asyncio
from functools import partial

from fastapi import FastAPI
from fastapi.requests import Request
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware

import bisector
from bisector.app.operations.changes import Changes, read_revision
from bisector.app.operations.spent_hours import SpentHours
from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError
from bisector.interfaces.web import static_files
from bisector.interfaces.web.api import (
    administration,
    alert_routes,
    artefact_transfer,
    bisection_routes,
    measurement_routes,
    outbox_routes,
    queue_routes,
    series_routes,
)
from bisector.interfaces.web.authority import Reader, Server, server_of
from bisector.interfaces.web.guard import Guard
from bisector.interfaces.web.head_requests import HeadLikeGet
from bisector.interfaces.web.metrics import CountedWork, Numbers
from bisector.interfaces.web.pages import (
    alert_pages,
    bisection_list,
    changed_lists,
    compare_page,
    costs_page,
    live_bisection,
    login_page,
    outbox_page,
    overview_page,
    queue_page,
    series_pages,
    testbed_pages,
)
from bisector.interfaces.web.pages.drawn_bisections import DrawnBisections
from bisector.interfaces.web.pages.kept_comparisons import KeptComparisons
from bisector.interfaces.web.problems import handle_errors
from bisector.model.printable import printable_json

API = "/api/v1"
MAX_BODY_BYTES = 64 * 1024
"""Longest body of a request: a start with all its options takes a few kilobytes. A route may set its own
limit."""
PAGES = (
    login_page,
    changed_lists,
    overview_page,
    queue_page,
    bisection_list,
    live_bisection,
    testbed_pages,
    compare_page,
    costs_page,
    outbox_page,
    alert_pages,
    series_pages,
)
_HEALTH_SECONDS = 3.0
"""How long the database may take to answer: clients that ask for health give up after 5 to 10 s."""


class Values(Response):
    """JSON as '--json' prints it: nothing in it that a terminal obeys."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """Return the text of JSON values."""
        return (printable_json(content) + "\n").encode()


def make_application(wiring: Wiring) -> FastAPI:
    """Return the application on the database of a wiring."""
    app = FastAPI(
        title="perfbisect",
        version=bisector.__version__,
        openapi_url=f"{API}/openapi.json",
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        default_response_class=Values,
        middleware=[
            Middleware(Guard, hosts=wiring.settings.web.hosts if wiring.settings.web else ()),
            Middleware(RequestBodyLimitMiddleware, max_body_size=MAX_BODY_BYTES),
            Middleware(HeadLikeGet),
        ],
    )
    app.state.server = server = Server(wiring)
    app.state.drawn = DrawnBisections(server.drawings)
    app.state.compared = KeptComparisons(server.few)
    app.state.changes = Changes(partial(read_revision, wiring))
    app.state.spent_hours = SpentHours()
    handle_errors(app, login_page.answer_error)
    routes = (
        bisection_routes,
        measurement_routes,
        queue_routes,
        alert_routes,
        series_routes,
        outbox_routes,
        administration,
        artefact_transfer,
    )
    app.include_router(measurement_routes.imports, prefix=API)
    for one in routes:
        app.include_router(one.router, prefix=API)
    for page in PAGES:
        app.include_router(page.router)
    app.include_router(static_files.router)
    app.state.work = CountedWork()
    app.add_api_route(
        "/metrics", _metrics, methods=["GET"], tags=["server"], response_class=PlainTextResponse
    )
    app.add_api_route("/healthz", _healthz, methods=["GET"], tags=["server"])
    return app


def _metrics(request: Request, user: Reader) -> Response:
    """Return numbers in the form of Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Numbers(server_of(request).wiring_for(user), request.app.state.work))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)


async def _healthz(request: Request) -> dict[str, str]:
    """Say whether the server and its database answer. Needs no token, and says nothing else."""
    server: Server = request.app.state.server
    try:
        async with asyncio.timeout(_HEALTH_SECONDS):
            await asyncio.get_running_loop().run_in_executor(None, server.wiring.coordinator.now)
    except TimeoutError as error:
        raise InfrastructureError(
            "the database does not answer", cure="look at the database server"
        ) from error
    return {"status": "ok"}
