"""A Redfish service that answers as it is told, with a certificate as BMCs have from the factory."""

from __future__ import annotations

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

_SYSTEM = "/redfish/v1/Systems/1"
_RESET = f"{_SYSTEM}/Actions/ComputerSystem.Reset"

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
class RedfishService:
    """What it says and was asked. system: what is said of the machine beside its name, from a reset on
    `after_reset`, too."""

    url: str = ""
    system: dict[str, Any] = field(default_factory=dict)
    after_reset: dict[str, Any] = field(default_factory=dict)
    resets: list[str] = field(default_factory=list)
    patches: list[dict[str, Any]] = field(default_factory=list)
    requests: int = 0

    def document(self, path: str) -> dict[str, Any] | None:
        """Return what is at a path."""
        link = "@odata.id"
        actions = {"#ComputerSystem.Reset": {"target": _RESET}}
        documents: dict[str, dict[str, Any]] = {
            "/redfish/v1/": {link: path, "Id": "R", "Name": "R", "Systems": {link: "/redfish/v1/Systems"}},
            "/redfish/v1/Systems": {link: path, "Name": "S", "Members": [{link: _SYSTEM}]},
            _SYSTEM: {link: path, "Id": "1", "Name": "1", "Actions": actions, **self.system},
        }
        return documents.get(path)


@contextlib.contextmanager
def redfish_service(certificate: Path | None = None) -> Iterator[RedfishService]:
    """Run one on this machine. certificate: with its key beside it; without one it speaks no TLS."""
    service = RedfishService()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(service.document(self.path))

        def do_POST(self) -> None:
            service.resets.append(self._body()["ResetType"])
            service.system |= service.after_reset
            self._answer({})

        def do_PATCH(self) -> None:
            service.patches.append(self._body())
            self._answer({})

        def _body(self) -> dict[str, Any]:
            body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            return body

        def _answer(self, document: dict[str, Any] | None) -> None:
            service.requests += 1
            data = json.dumps(document or {}).encode()
            self.send_response(404 if document is None else 200)
            self.send_header("Content-Type", "application/json")
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
