"""A server of an empty lab with two testbeds, asked by an administrator; what it writes down of changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from bisector.app.upkeep import tokens
from bisector.app.wiring import Wiring
from bisector.interfaces.web.web_application import API
from bisector.schemas.web_settings import WebSettings
from tests.support.machines.fake_inventory import inventory_of
from tests.support.servers.web import make_tokens, serving, wiring_in


@pytest.fixture
def served(tmp_path: Path) -> Wiring:
    """Of the server; it lists the testbed 'box', and not 'other'."""
    inventory = tmp_path / "lab.yml"
    inventory.write_text(inventory_of("box", ", other: {perfbisect_kind: libvirt, perfbisect_clock: wall}"))
    plain = wiring_in(tmp_path).settings
    return Wiring(plain.model_copy(update={"lab": inventory, "web": WebSettings(testbeds=("box",))}))


@pytest.fixture
def admin(served: Wiring) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {make_tokens(served)['admin']}"}
    with serving(served) as url, httpx.Client(base_url=url + API, headers=headers, timeout=60.0) as found:
        yield found


@pytest.fixture
def written(served: Wiring) -> Callable[[], tuple[str, str, str, str]]:
    """Return what gives the last change: who, what, of what, details."""

    def last() -> tuple[str, str, str, str]:
        (found,) = tokens.access_of(served).changes(1)
        return found.who, found.what, found.target, found.details

    return last
