"""Files of the pages: kept for good by browsers, since another content has another name."""

from __future__ import annotations

import hashlib
from pathlib import Path

import httpx

from bisector.interfaces.web.static_files import static_files
from tests.support.servers.web import serving, wiring_in


def test_each_file_is_served_by_the_name_of_its_content(tmp_path: Path) -> None:
    with serving(wiring_in(tmp_path)) as url:
        for name, file in static_files().items():
            assert hashlib.sha256(file.content).hexdigest()[:16] in file.url
            answer = httpx.get(url + file.url, timeout=60)
            assert answer.content == file.content, name
            assert "immutable" in answer.headers["cache-control"]
            assert answer.headers["x-content-type-options"] == "nosniff"
        for wrong in ("style.css", "../pages.css", "style.0000000000000000.css", "%2e%2e%2fpages.css"):
            assert httpx.get(f"{url}/static/{wrong}", timeout=60).status_code == 404
