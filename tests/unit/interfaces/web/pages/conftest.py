"""A lab, and its server for one who may change things: a module has its own, which its tests may change."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from bisector.app.wiring import Wiring
from bisector.interfaces.web import authority
from bisector.model.access import Role
from tests.support.servers import served_lab
from tests.support.servers.web import make_tokens, serving


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Wiring:
    return served_lab.make(tmp_path_factory.mktemp("lab"), boots=12)


@pytest.fixture(scope="module")
def secrets(lab: Wiring) -> dict[Role, str]:
    return make_tokens(lab)


@pytest.fixture(scope="module")
def client(lab: Wiring, secrets: dict[Role, str]) -> Iterator[httpx.Client]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(authority, "BURST", 1e9)
        with serving(lab) as url:
            headers = {"Authorization": f"Bearer {secrets['operate']}", "Origin": url}
            with httpx.Client(base_url=url, headers=headers, timeout=60.0) as found:
                yield found


@pytest.fixture(scope="module")
def as_reader(secrets: dict[Role, str]) -> dict[str, str]:
    """Headers of one who may only read."""
    return {"Authorization": f"Bearer {secrets['read']}"}
