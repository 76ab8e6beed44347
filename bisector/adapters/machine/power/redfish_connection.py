"""Connections to a BMC over Redfish: which certificate it may show, and how it lets us in."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import sushy
from requests import Response
from requests.adapters import HTTPAdapter
from sushy.auth import BasicAuth
from sushy.connector import Connector
from sushy.exceptions import AccessError, BadRequestError, HTTPError, ResourceNotFoundError, SushyError

from bisector.adapters.machine.power.power_stage import PowerRefused
from bisector.errors import InfrastructureError
from bisector.schemas.machine.power import RedfishPowerSettings as Variables
from bisector.schemas.masking import mask

log = logging.getLogger(__name__)
logging.getLogger("sushy").setLevel(logging.CRITICAL)  # what it logs is raised, and shown, anyway

_CONNECT_SECONDS = 10.0
_READ_SECONDS = 60.0
"""Timeouts of one request. A BMC that is there connects at once; some take half a minute to answer."""

_HTTPS_PORT = 443

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)

_UNAUTHORIZED = 401
_NO_SESSIONS = (404, 405, 501)
"""HTTP statuses that a BMC without sessions answers to a login."""

_CLOSE_TRIES = 2
"""Tries of ending a session. One that stays open is ended by the BMC itself, mostly after half an hour."""

_ALL_TAKEN = re.compile(r"session\s?limit|simultaneous sessions|(maximum|too many)\b.{0,80}\bsessions?", re.I)
"""How BMCs say that no session is free; the first two are of Redfish's own SessionLimitExceeded."""


class _OneCertificate(HTTPAdapter):
    """Connections to whoever has one certificate, with or without a proxy in between."""

    def __init__(self, fingerprint: str) -> None:
        self._fingerprint = fingerprint  # before: the pools are made in there
        super().__init__()

    def init_poolmanager(self, *args: object, **kwargs: object) -> None:
        """See `HTTPAdapter`."""
        super().init_poolmanager(*args, assert_fingerprint=self._fingerprint, **kwargs)  # type: ignore[arg-type]

    def proxy_manager_for(self, proxy: str, **kwargs: object) -> object:
        """See `HTTPAdapter`."""
        return super().proxy_manager_for(proxy, assert_fingerprint=self._fingerprint, **kwargs)


class BmcConnector(Connector):  # type: ignore[misc]  # sushy has no types
    """sushy's connections. offers_basic: whether the last refusal had HTTP Basic among what it asks for."""

    def __init__(self, url: str, verify: bool | str, fingerprint: str) -> None:
        """fingerprint: of the one certificate that may be shown, '' where `verify` decides."""
        super().__init__(
            url,
            verify=verify,
            response_callback=self._note_challenge,
            server_side_retries=1,
            server_side_retries_delay=3,
            default_request_timeout=_READ_SECONDS,
            connect_timeout=_CONNECT_SECONDS,
        )
        self.offers_basic = False
        if fingerprint:
            self._session.mount("https://", _OneCertificate(fingerprint))

    def _note_challenge(self, response: Response) -> None:
        if response.status_code == _UNAUTHORIZED:
            challenges = response.headers.get("WWW-Authenticate", "")
            self.offers_basic = re.search(r"\bbasic\b", challenges, re.IGNORECASE) is not None


class RedfishLogin:
    """How one BMC lets a user in: by HTTP Basic, and for a session where it has that switched off.

    BMCs lock an account after three to five wrong passwords. One operation tries the password once where
    the refusal offers Basic, which is on then and would have taken the right one (Redfish, AccountService,
    HTTPBasicAuth); else twice, by Basic and for a session. Where a session was had, Basic is not tried again.
    """

    def __init__(self, user: str) -> None:
        self._user = user
        self._by_session = False

    @contextlib.contextmanager
    def enter(
        self, url: str, connector: BmcConnector, password: str
    ) -> Iterator[tuple[sushy.Sushy, list[str]]]:
        """Give the BMC and the paths of its systems; a session is ended at the end, however that comes.

        Raises sushy's errors, AccessError where the password is refused; PowerRefused where it is and the BMC
        says so in another way; InfrastructureError where all sessions are taken.
        """
        bmc = sushy.Sushy(url, auth=BasicAuth(self._user, password), connector=connector)
        if not self._by_session:
            try:
                paths = _systems(bmc)
            except AccessError as refusal:
                if refusal.status_code != _UNAUTHORIZED or connector.offers_basic:
                    raise
            else:
                yield bmc, paths
                return
        address = self._open_session(bmc, connector, password)
        try:
            self._by_session = True
            yield bmc, _systems(bmc)
        finally:
            _end_session(connector, address)

    def _open_session(self, bmc: sushy.Sushy, connector: BmcConnector, password: str) -> str:
        """Open a session for all further requests; return its path, '' where the BMC names none."""
        # sushy's own SessionAuth opens another session at each refusal, also where the user merely may not do
        # something (403), and leaves the one before open.
        connector.set_auth(None)
        try:
            token, address = bmc.create_session(self._user, password)
        except HTTPError as error:
            message = mask(str(error), {password})
            if _ALL_TAKEN.search(message):
                raise InfrastructureError(
                    "all sessions of the BMC are taken",
                    details=message,
                    cure="end some on the BMC's own page, or switch on HTTP Basic authentication there",
                ) from None
            # 400 is a wrong password for BMCs of HPE.
            if isinstance(error, AccessError | BadRequestError) or error.status_code in _NO_SESSIONS:
                self._by_session &= error.status_code not in _NO_SESSIONS  # somebody has switched them off
                raise PowerRefused(
                    f"the BMC does not accept the user '{self._user}' and its password",
                    details=f"asked for a session, it answers: {message}",
                ) from None
            raise
        connector.set_http_session_auth(token)
        return urlsplit(address or "").path  # some name a host by which only they know themselves


def _systems(bmc: sushy.Sushy) -> list[str]:
    return list(bmc.get_system_collection().members_identities)


def _end_session(connector: BmcConnector, path: str) -> None:
    """End a session. Never raises for a BMC that does not: what was asked for before is done all the same."""
    why = "it did not tell where the session is"
    for _ in range(_CLOSE_TRIES if path else 0):
        try:
            connector.delete(path)
        except (AccessError, ResourceNotFoundError):
            return  # it is over already
        except (SushyError, OSError) as error:
            why = type(error).__name__  # its text is the BMC's
        else:
            return
    log.info("a BMC was left with an open session, which it ends itself: %s", why)


def trusted(wanted: Variables) -> tuple[bool | str, str]:
    """Return how connections are verified, and the fingerprint that the BMC's certificate must have, or ''.

    The one that a BMC has from the factory names no address, and an issuer that nobody knows: where it is in
    the file, that proves enough, and nothing else could be proven. Raises OSError: the file cannot be read.
    """
    if wanted.certificate in (None, "any"):
        return wanted.certificate is None, ""
    # A file in DER has no text; the connection refuses it.
    file = Path(wanted.certificate).read_text(encoding="utf-8", errors="replace")
    known = {"".join(text.split()) for text in _CERTIFICATE.findall(file)}
    url = urlsplit(wanted.url)
    if url.scheme == "https":
        where = str(url.hostname), url.port or _HTTPS_PORT
        with contextlib.suppress(OSError):  # the connection itself will tell
            shown = ssl.get_server_certificate(where, timeout=_CONNECT_SECONDS)
            if any("".join(text.split()) in known for text in _CERTIFICATE.findall(shown)):
                return False, hashlib.sha256(ssl.PEM_cert_to_DER_cert(shown)).hexdigest()
    return wanted.certificate, ""
