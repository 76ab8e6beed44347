"""A Redfish service that answers as it is told, with a certificate as BMCs have from the factory."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_ROOT = "/redfish/v1/"
SYSTEM = "/redfish/v1/Systems/1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
SESSIONS = "/redfish/v1/SessionService/Sessions"

_CERTIFICATES = """\
set -e
new='openssl req -newkey rsa:2048 -nodes'
$new -x509 -keyout ca.key -out ca.pem -days 2 -subj '/CN=Default Issuer (Do not trust)'
$new -keyout issued.key -out csr.pem -subj /CN=ILOCZ123
openssl x509 -req -in csr.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out issued.pem -days 2
$new -x509 -keyout self.key -out self.pem -days 2 -subj /CN=idrac-ABC
chmod 600 ca.pem issued.pem self.pem
"""
"""ca signs issued; neither issued nor self names an address."""


def make_certificates(folder: Path) -> None:
    """Write certificates of the names above, each with its key."""
    subprocess.run(["sh", "-c", _CERTIFICATES], cwd=folder, check=True, capture_output=True)


@dataclass
class Accounts:
    """Whom a service lets in. password: of the user 'lab', '' asks nobody; basic, sessions: what is on.

    advertised: whether a refusal says that Basic may be used. location: put before a session's path.
    refusal: status and text of an answer to a login with a wrong password, or to all where it is `stern`.
    close_fails: how many requests to end a session are answered with an error. forbidden: paths at which
    nobody may do anything. attempts: how each login was tried, 'basic' or 'session', that was refused;
    by_basic: how many requests came with HTTP Basic.
    """

    password: str = ""
    basic: bool = True
    advertised: bool = False
    sessions: bool = True
    location: str = ""
    refusal: tuple[int, str] = (401, "The authentication credentials are missing or invalid.")
    stern: bool = False
    close_fails: int = 0
    forbidden: tuple[str, ...] = ()
    open: dict[str, str] = field(default_factory=dict)
    """Paths of sessions by their token."""
    opened: int = 0
    attempts: list[str] = field(default_factory=list)
    by_basic: int = 0

    def status(self, method: str, path: str, authorization: str | None, token: str | None) -> int:
        """Return 200 for one who may ask that, or the status of a refusal."""
        self.by_basic += authorization is not None
        if path == _ROOT or not self.password or (method, path) == ("POST", SESSIONS):
            return 200
        if token in self.open or (self.basic and authorization == self._right()):
            return 403 if path in self.forbidden else 200
        self.attempts += ["basic"] if authorization is not None else []
        return 401

    def log_in(self, body: dict[str, Any]) -> tuple[int, dict[str, Any], dict[str, str]]:
        """Return status, document and headers of the answer to who wants a session."""
        if not self.sessions:
            return 405, {}, {}
        if self.stern or body != {"UserName": "lab", "Password": self.password}:
            self.attempts.append("session")
            status, text = self.refusal
            return status, {"error": {"code": "Base.1.0.GeneralError", "message": text}}, {}
        self.opened += 1
        token, path = f"token-canary-{self.opened}", f"{SESSIONS}/{self.opened}"
        self.open[token] = path
        return 201, {"@odata.id": path}, {"X-Auth-Token": token, "Location": f"{self.location}{path}"}

    def log_out(self, path: str) -> int:
        """Return the status of the answer to who ends a session."""
        if self.close_fails:
            self.close_fails -= 1
            return 503
        found = [token for token, at in self.open.items() if at == path]
        for token in found:
            del self.open[token]
        return 204 if found else 404

    def _right(self) -> str:
        return f"Basic {base64.b64encode(f'lab:{self.password}'.encode()).decode()}"


@dataclass
class RedfishService:
    """What it says and was asked. system: what is said of the machine beside its name, from a reset on
    `after_reset`, too. odd: (status, JSON) that paths answer with in place of what is right there."""

    url: str = ""
    accounts: Accounts = field(default_factory=Accounts)
    system: dict[str, Any] = field(default_factory=dict)
    after_reset: dict[str, Any] = field(default_factory=dict)
    resets: list[str] = field(default_factory=list)
    patches: list[dict[str, Any]] = field(default_factory=list)
    odd: dict[str, tuple[int, object]] = field(default_factory=dict)
    requests: int = 0

    def document(self, path: str) -> dict[str, Any] | None:
        """Return what is at a path."""
        link = "@odata.id"
        actions = {"#ComputerSystem.Reset": {"target": RESET}}
        systems, sessions = {link: "/redfish/v1/Systems"}, {"Sessions": {link: SESSIONS}}
        documents: dict[str, dict[str, Any]] = {
            _ROOT: {link: path, "Id": "R", "Name": "R", "Systems": systems, "Links": sessions},
            "/redfish/v1/Systems": {link: path, "Name": "S", "Members": [{link: SYSTEM}]},
            SYSTEM: {link: path, "Id": "1", "Name": "1", "Actions": actions, **self.system},
        }
        return documents.get(path)


@contextlib.contextmanager
def redfish_service(certificate: Path | None = None) -> Iterator[RedfishService]:
    """Run one on this machine. certificate: with its key beside it; without one it speaks no TLS."""
    service = RedfishService()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self._is_let_in():
                document = service.document(self.path)
                self._answer(404 if document is None else 200, document or {})

        def do_POST(self) -> None:
            body = self._body()
            if self.path == SESSIONS:
                self._answer(*service.accounts.log_in(body))
            elif self._is_let_in():
                service.resets.append(body["ResetType"])
                service.system |= service.after_reset
                self._answer(200, {})

        def do_PATCH(self) -> None:
            body = self._body()
            if self._is_let_in():
                service.patches.append(body)
                self._answer(200, {})

        def do_DELETE(self) -> None:
            if self._is_let_in():
                self._answer(service.accounts.log_out(self.path), {})

        def _is_let_in(self) -> bool:
            """Return whether one may ask that; else refuse it."""
            said = (self.headers.get("Authorization"), self.headers.get("X-Auth-Token"))
            status = service.accounts.status(self.command, self.path, *said)
            if status != 200:
                challenge = {"WWW-Authenticate": 'Basic realm="R"'} if service.accounts.advertised else {}
                self._answer(status, {}, challenge)
            return status == 200

        def _body(self) -> dict[str, Any]:
            body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            return body

        def _answer(self, status: int, document: object, headers: dict[str, str] | None = None) -> None:
            service.requests += 1
            status, document = service.odd.get(self.path, (status, document))
            data = b"" if status == 204 else json.dumps(document).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, certificate.with_suffix(".key"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
    service.url = f"{'http' if certificate is None else 'https'}://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
