"""Which bisections the list shows, by what is asked for."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.support.servers import served_lab
from tests.support.servers.web import make_tokens, serving


@pytest.mark.parametrize("more", ["", "&text=w", "&all=1"])
def test_a_status_is_that_which_is_shown(tmp_path: Path, more: str) -> None:
    """A process was killed while it executed the one that is stored as running."""
    wiring = served_lab.make(tmp_path, boots=6)
    headers = {"Authorization": f"Bearer {make_tokens(wiring)['read']}"}
    with serving(wiring) as url, httpx.Client(base_url=url, headers=headers, timeout=60) as client:

        def shown(status: str) -> list[tuple[str, str]]:
            rows = client.get(f"/bisections.json?status={status}{more}").json()
            return [(row["id"], row["status"]) for row in rows]

        assert shown("interrupted") == [("interrupted-1", "interrupted"), ("running-1", "interrupted")]
        assert shown("running") == []
        assert shown("queued") == [("queued-1", "queued")]
        assert len(shown("open")) == 4
        wrong = client.get("/bisections.json?status=runing")
        assert wrong.status_code == 400 and wrong.json()["detail"].startswith("status: must be ")
