"""A real server on bisections of fakes, and the command line beside it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bisector.adapters.http import server_connection
from bisector.app.wiring import Wiring
from bisector.interfaces.cli import run
from bisector.schemas.settings import load_settings
from bisector.schemas.web_settings import WebSettings
from tests.support.command_line import START, Bench
from tests.support.machines.fake_inventory import inventory_of
from tests.support.servers.command_client import Client, begin_another
from tests.support.servers.web import make_tokens, serving


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with a bisection that has ended, and one of the same request that was interrupted."""
    folder = tmp_path_factory.mktemp("ended")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PERFBISECT_STATE_DIR", str(folder / "state"))
        patch.setenv("PERFBISECT_CACHE_DIR", str(folder / "cache"))
        bench = Bench(folder, patch)
        assert run(START) == 0
        begin_another(bench)
    return folder / "state"


@pytest.fixture(scope="module")
def url(wiring: Wiring) -> Iterator[str]:
    """The address of a server on the module's own `wiring`."""
    with serving(wiring) as address:
        yield address


@pytest.fixture
def client(
    ended: Path, bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Client]:
    monkeypatch.setattr(server_connection, "_SILENT_SECONDS", 60.0)  # a busy machine adds no words
    shutil.copytree(ended, bench.state)
    monkeypatch.setenv("PERFBISECT_OWNER", "operate")  # as the token is called
    lab = bench.state.parent / "lab.yml"
    lab.write_text(inventory_of("fake"))
    monkeypatch.setenv("PERFBISECT_LAB", str(lab))
    monkeypatch.setenv("COLUMNS", "100")
    listed = WebSettings(repositories={"linux": Path("/fake")})
    wiring = Wiring(load_settings().model_copy(update={"web": listed}))
    secrets = make_tokens(wiring)
    monkeypatch.setenv("PERFBISECT_TOKEN", secrets["operate"])
    with serving(wiring) as url:
        yield Client(url, secrets, capsys)
