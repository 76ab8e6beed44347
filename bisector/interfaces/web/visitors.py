"""Visitors of the pages: a browser with a session, one whose user a proxy names, or a program with a token.

A session is begun with a token in a form. Its secret is in a cookie that scripts cannot read and that no page
of another site can make a browser send; the database has its SHA-256. What changes something must say that it
comes from a page of this server.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends
from fastapi.requests import Request
from fastapi.responses import Response

from bisector.app.upkeep import tokens
from bisector.interfaces.web.authority import Server, address_of, require_role, server_of
from bisector.interfaces.web.guard import is_loopback, name_of
from bisector.interfaces.web.problems import Refused
from bisector.model.access import Role, Token
from bisector.schemas.web_settings import USER, WebSettings

_COOKIE = "perfbisect-session"


class LoginNeeded(Refused):
    """The visitor of a page is unknown."""

    def __init__(self) -> None:
        super().__init__(
            HTTPStatus.UNAUTHORIZED,
            "nobody is logged in",
            cure="log in with a token; the server's administrator makes one: perfbisect token add NAME",
        )


@dataclass(frozen=True)
class Visitor:
    """Who looks at a page. session: the secret of the browser's, None where a proxy or a token names who."""

    user: Token
    server: Server
    session: str | None = None
    named_by_proxy: bool = False

    def require_valid(self) -> None:
        """Raise Refused where the session or token that a page is shown for is no longer valid."""
        if self.session is not None and tokens.access_of(self.server.wiring).find_session(self.session):
            return
        if self.session is not None:
            raise LoginNeeded
        if not self.named_by_proxy:
            self.server.require_valid(self.user)


def find_visitor(request: Request) -> Visitor:
    """Return who sends a request. Raises LoginNeeded; Refused: a wrong token, or too many requests."""
    server, address = server_of(request), address_of(request)
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return Visitor(server.authenticate(given.strip(), address), server)
    named = _named_by_proxy(request, server.wiring.settings.web)
    if named is not None:
        server.count(named, address)
        return Visitor(named, server, named_by_proxy=True)
    session = request.cookies.get(_cookie_name(request))
    found = tokens.access_of(server.wiring).find_session(session) if session else None
    if found is None:
        if session:
            server.count(None, address)
        raise LoginNeeded
    server.count(found, address)
    return Visitor(found, server, session)


def _named_by_proxy(request: Request, web: WebSettings | None) -> Token | None:
    """Return whom a proxy on this host has logged in. Raises Refused: it gives no user's name."""
    if web is None or web.user_header is None or not _comes_from_this_host(request):
        return None
    names = request.headers.getlist(web.user_header)
    if not names:
        return None
    if len(names) > 1 or USER.fullmatch(names[0]) is None:
        raise Refused(
            HTTPStatus.FORBIDDEN,
            f"the header {web.user_header} holds no user's name",
            cure="have the proxy set it to one name of letters, digits and . _ @ + -, at most 100",
        )
    return Token(names[0], web.users.get(names[0], "read"), 0.0, None, None, None)


def _comes_from_this_host(request: Request) -> bool:
    """Return whether the connection is from the loopback.

    The server replaces the address of a proxy on the loopback, and of no other one, by what X-Forwarded-For
    says; the port is 0 then, which no connection has.
    """
    client = request.client
    return client is not None and (client.port == 0 or is_loopback(client.host))


def begin_session(request: Request, secret: str, response: Response) -> Token:
    """Begin a browser's session with a token; the cookie is in the answer. Raises Refused."""
    server = server_of(request)
    user = server.authenticate(secret, address_of(request))
    require_role(user, "read")
    response.set_cookie(
        _cookie_name(request),
        tokens.log_in(server.wiring, secret),
        max_age=int(tokens.SESSION_SECONDS),
        secure=_is_secure(request),
        httponly=True,
        samesite="strict",
    )
    return user


def end_session(request: Request, response: Response) -> None:
    """End the session of a browser, here and there."""
    name = _cookie_name(request)
    session = request.cookies.get(name)
    if session:
        tokens.access_of(server_of(request).wiring).close_session(session)
    response.delete_cookie(name, secure=_is_secure(request), httponly=True, samesite="strict")


def _is_secure(request: Request) -> bool:
    """Return whether a browser may send the cookie over TLS only: always but on the loopback."""
    return not is_loopback(name_of(request.headers.get("host", "")))


def _cookie_name(request: Request) -> str:
    """Return the cookie's name; '__Host-' keeps other hosts of the domain from setting it (RFC 6265bis)."""
    return f"__Host-{_COOKIE}" if _is_secure(request) else _COOKIE


def visiting(role: Role) -> Callable[[Request], Visitor]:
    """Return the dependency that lets only visitors pass that may do what a role is needed for."""

    def check(request: Request) -> Visitor:
        found = find_visitor(request)
        require_role(found.user, role)
        if request.method != "GET":
            require_own_page(request)
        return found

    return check


def require_own_page(request: Request) -> None:
    """Raise Refused for a form that is not one of this server's pages; `guard` compares Origin with Host."""
    if "origin" not in request.headers:
        raise Refused(
            HTTPStatus.FORBIDDEN,
            "the request does not say which page it comes from",
            cure="send the form from a page of this server; programs use /api/v1",
        )


Reading = Annotated[Visitor, Depends(visiting("read"))]
Operating = Annotated[Visitor, Depends(visiting("operate"))]
