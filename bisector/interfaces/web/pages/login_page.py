"""Log in with a token and out again, and what a browser is shown where a request fails."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter
from fastapi.requests import Request
from fastapi.responses import RedirectResponse, Response

from bisector.app.upkeep import tokens
from bisector.errors import PerfbisectError
from bisector.interfaces.web.pages.page_view import Fields, html_answer, own_address, url
from bisector.interfaces.web.problems import Refused
from bisector.interfaces.web.visitors import (
    LoginNeeded,
    Visitor,
    begin_session,
    end_session,
    find_visitor,
    require_own_page,
)

router = APIRouter(include_in_schema=False)

_NOT_PAGES = ("/api/", "/metrics", "/healthz", "/static/")
_FOR_PROGRAMS = (".json", ".csv", ".txt", "/events")


@router.get("/login")
def show_login(request: Request, next: str = "/") -> Response:
    """Show the form for a token."""
    return _form(request, own_address(next))


@router.post("/login")
def log_in(request: Request, fields: Fields) -> Response:
    """Begin a session with the token of the form."""
    require_own_page(request)
    target = own_address(fields.get("next", ""))
    answer = RedirectResponse(target, HTTPStatus.SEE_OTHER)
    try:
        begin_session(request, fields.get("token", "").strip(), answer)
    except Refused as error:
        wrong = (
            "This is not a valid token." if error.status == HTTPStatus.UNAUTHORIZED else f"{error.message}."
        )
        return _form(request, target, wrong, error.status)
    return answer


@router.post("/logout")
def log_out(request: Request) -> Response:
    """End the session of a browser."""
    require_own_page(request)
    answer = RedirectResponse("/login", HTTPStatus.SEE_OTHER)
    end_session(request, answer)
    return answer


def _form(request: Request, target: str, wrong: str = "", status: int = HTTPStatus.OK) -> Response:
    hours = f"{tokens.SESSION_SECONDS / 3600:.0f}"
    return html_answer(
        request, "login.html.j2", None, title="Log in", code=status, next=target, wrong=wrong, hours=hours
    )


def answer_error(request: Request, error: PerfbisectError, problem: Response) -> Response:
    """Return the page of an error for a browser that wanted one; the problem document for all others."""
    path = request.url.path
    wants_page = "text/html" in request.headers.get("accept", "")
    if not wants_page or path.startswith(_NOT_PAGES) or path.endswith(_FOR_PROGRAMS):
        return problem
    if isinstance(error, LoginNeeded) and request.method == "GET":
        return _lead_to_login(request)
    visitor = _visitor_or_none(request)
    return html_answer(
        request,
        "error.html.j2",
        visitor,
        title=f"{error.message[:1].upper()}{error.message[1:]}",
        code=problem.status_code,
        error=error,
        back=_page_of_form(request),
    )


def _page_of_form(request: Request) -> str:
    """Return the address of the page that has the form of a request, '' where it came from none."""
    _, *parts = request.url.path.split("/")
    if request.method != "POST" or parts[0] in ("", "login", "logout"):
        return ""
    return url(*parts[:2])  # of a path that is decoded already


def _lead_to_login(request: Request) -> Response:
    """Return what leads to the form for a token, or to the page itself where the cookie was only withheld.

    A browser sends no such cookie when it follows a link of another site, as of a mail that is read there.
    The page that it gets then loads itself again, which counts as ours.
    """
    address = f"{request.url.path}?{request.url.query}".removesuffix("?")
    if request.headers.get("sec-fetch-site") == "cross-site":
        return html_answer(request, "again.html.j2", None, title="perfbisect", address=address)
    return RedirectResponse(url("login", next=address), HTTPStatus.SEE_OTHER)


def _visitor_or_none(request: Request) -> Visitor | None:
    try:
        return find_visitor(request)
    except PerfbisectError:
        return None
