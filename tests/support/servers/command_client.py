"""The command line asked with and without a server, on bisections of fakes."""

from __future__ import annotations

import pytest

from bisector.app.wiring import Wiring
from bisector.interfaces.cli import run
from bisector.model.access import Role
from bisector.schemas.settings import load_settings
from tests.support import fake_bisection as fake
from tests.support.command_line import Bench

Printed = tuple[int, str, str]


class Client:
    """The command line, with and without --server."""

    def __init__(self, url: str, secrets: dict[Role, str], capsys: pytest.CaptureFixture[str]) -> None:
        self.url, self.secrets, self.capsys = url, secrets, capsys

    def here(self, *arguments: str) -> Printed:
        self.capsys.readouterr()
        code = run(arguments)
        return code, *self.capsys.readouterr()

    def there(self, *arguments: str) -> Printed:
        return self.here("--server", self.url, *arguments)


def begin_another(bench: Bench) -> str:
    store = Wiring(load_settings()).store
    stored = fake.begin(store, bench.lab)
    store.set_status(stored.id, "interrupted")
    return stored.id
