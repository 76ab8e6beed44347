"""The sender of a request, and whether the role of the token suffices."""

from __future__ import annotations

import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import Event, Lock
from typing import Annotated

from fastapi import Depends
from fastapi.requests import Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from bisector.app.operations.event_stream import Places
from bisector.app.upkeep import tokens
from bisector.app.wiring import Wiring
from bisector.interfaces.web.problems import Refused
from bisector.interfaces.web.request_slots import Slots
from bisector.model.access import Role, Token, may

REQUESTS_A_SECOND, BURST = 20.0, 200.0
"""Requests of one token. `watch` asks once and listens; a command asks one to four times."""
FAILURES_A_SECOND, FAILED_BURST = 1.0, 20.0
"""Requests of one address without a valid token: chosen, enough for a person with a wrong token, and far too
few to guess one."""
AT_ONCE = 2
"""Plans, archives and the like: each takes a CPU for seconds, and a lab's server has other work."""
DRAWINGS, DRAWINGS_OF_ONE = 4, 2
"""Reports and pages of bisections: each takes a tenth of a second, of a long history that runs seconds."""
STREAMS, STREAMS_OF_ONE = 200, 10
"""Streams of events: each one of a bisection looks into the database twice a second, all those of lists
together once."""
DOWNLOADS, DOWNLOADS_OF_ONE = 4, 2
UPLOADS, UPLOADS_OF_ONE = 2, 1
"""Archives in transit: each takes up to 4 GiB of the server's disk until its last byte."""
_MOST_KEYS = 10_000
"""Senders that are counted at once, so that they take a few MB. The one that was silent longest is forgotten,
and has its whole burst again."""

_logger = logging.getLogger(__name__)


@dataclass
class Limiter:
    """Token buckets: each sender may send `burst` requests at once, and `rate` a second on average."""

    rate: float
    burst: float
    clock: Callable[[], float] = time.monotonic
    _left: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def wait(self, key: str) -> float:
        """Count a request; return the seconds until it would be allowed, 0 for one that is."""
        with self._lock:
            now = self.clock()
            left, since = self._left.pop(key, (self.burst, now))
            left = min(self.burst, left + (now - since) * self.rate)
            allowed = left >= 1.0
            self._left[key] = (left - 1.0 if allowed else left, now)
            while len(self._left) > _MOST_KEYS:
                self._left.popitem(last=False)
            return 0.0 if allowed else (1.0 - left) / self.rate


@dataclass
class Server:
    """What all requests share.

    places: in the queue, for streams of events; users, strangers: how much those with and without a token may
    send; stopping: set once the server is told to stop. Slots: few: for what takes long; drawings: reports
    and pages of bisections; streams: of events; downloads, uploads: files, while they are sent.
    """

    wiring: Wiring
    places: Places = field(default_factory=Places)
    users: Limiter = field(default_factory=lambda: Limiter(REQUESTS_A_SECOND, BURST))
    strangers: Limiter = field(default_factory=lambda: Limiter(FAILURES_A_SECOND, FAILED_BURST))
    stopping: Event = field(default_factory=Event)
    few: Slots = field(default_factory=lambda: Slots("plans and files of others", AT_ONCE, AT_ONCE))
    drawings: Slots = field(default_factory=lambda: Slots("reports", DRAWINGS, DRAWINGS_OF_ONE))
    streams: Slots = field(default_factory=lambda: Slots("streams of events", STREAMS, STREAMS_OF_ONE))
    downloads: Slots = field(default_factory=lambda: Slots("files to send", DOWNLOADS, DOWNLOADS_OF_ONE))
    uploads: Slots = field(default_factory=lambda: Slots("files to receive", UPLOADS, UPLOADS_OF_ONE))

    def authenticate(self, secret: str | None, address: str) -> Token:
        """Return the token of a secret. Raises Refused: there is none, or it sends too much."""
        found = tokens.find(self.wiring, secret) if secret else None
        self.count(found, address)
        if found is None:
            raise Refused(
                HTTPStatus.UNAUTHORIZED,
                "the request has no valid token" if secret else "the request has no token",
                cure="give the token in PERFBISECT_TOKEN, or in a file of mode 600 that 'token_file' names; "
                "the server's administrator makes one: perfbisect token add NAME --role read",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return found

    def count(self, found: Token | None, address: str) -> None:
        """Count a request of a user, None: of a stranger. Raises Refused: too many."""
        wait = self.users.wait(found.name) if found is not None else self.strangers.wait(address)
        if wait:
            seconds = math.ceil(wait)
            raise Refused(
                HTTPStatus.TOO_MANY_REQUESTS,
                "too many requests",
                cure=f"wait {seconds} s before the next one",
                headers={"Retry-After": str(seconds)},
            )

    def require_valid(self, user: Token) -> None:
        """Raise Refused where the token of a request that is still answered is valid no longer."""
        if not tokens.access_of(self.wiring).is_valid(user):
            raise Refused(
                HTTPStatus.UNAUTHORIZED,
                f"the token '{user.name}' was revoked, or has expired",
                cure="ask the server's administrator for another one",
            )

    def wiring_for(self, user: Token) -> Wiring:
        """Return the wiring of one request: on the same database, all else made anew, owned by its sender."""
        settings = self.wiring.settings.model_copy(update={"owner": user.name, "server": None})
        other = Wiring(settings, _logger.warning)
        other.__dict__["database"] = self.wiring.database
        return other

    def record(self, user: Token, what: str, target: str, details: str = "") -> None:
        """Write down what the sender of a request has changed."""
        tokens.access_of(self.wiring).record(user.name, what, target, details)


def server_of(request: Request) -> Server:
    """Return what the requests of this server share."""
    server: Server = request.app.state.server
    return server


_bearer = HTTPBearer(auto_error=False, description="as 'perfbisect token add' shows it, once")


def address_of(request: Request) -> str:
    """Return from where a request comes; of one that a proxy on this host hands on, what the proxy says."""
    return request.client.host if request.client is not None else ""


def require_role(user: Token, role: Role) -> None:
    """Raise Refused where a token may not do what a role is needed for."""
    if not may(user.role, role):
        raise Refused(
            HTTPStatus.FORBIDDEN,
            f"the token '{user.name}' has the role '{user.role}'; this needs '{role}'",
            cure=f"ask the server's administrator for a token of that role: token add NAME --role {role}",
        )


def allowed(role: Role) -> Callable[..., Token]:
    """Return the dependency that lets only tokens pass that may do what a role is needed for."""

    def check(
        request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
    ) -> Token:
        secret = given.credentials if given is not None else None
        found = server_of(request).authenticate(secret, address_of(request))
        require_role(found, role)
        return found

    return check


Reader = Annotated[Token, Depends(allowed("read"))]
Operator = Annotated[Token, Depends(allowed("operate"))]
Administrator = Annotated[Token, Depends(allowed("admin"))]
Worker = Annotated[Token, Depends(allowed("worker"))]
