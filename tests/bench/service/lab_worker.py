"""A worker on a fake lab whose actions take scaled times; a program of its own, started by `lab`.

Its arguments are those of `tests/support/servers/fake_worker.py`; LAB in the environment has
`Settings` as JSON. It writes the times at which its testbeds were busy, and its CPU seconds, to FOLDER/busy.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bisector.engine.shares import schedule
from bisector.interfaces.cli import leave
from bisector.simulation.histories import linear
from bisector.simulation.noise_model import LabModel, SyntheticLab
from bisector.testing.fake_testbed import FakeSession, FakeTestbed
from bisector.testing.fakes import Pace
from tests.support import fake_bisection as fake
from tests.support.servers import fake_worker


@dataclass(frozen=True)
class Settings:
    """scale: real seconds of each second; noise, effect: percent; builders: of each worker."""

    scale: float = 0.1
    noise: float = 0.2
    effect: float = 2.0
    commits: int = 512
    build: float = 0.0
    boot: float = 15.0
    run: float = 5.0
    builders: int = 1

    def lab(self) -> SyntheticLab:
        """Return the lab: the same for the same settings."""
        model = LabModel(
            run_noise=self.noise,
            testbed_spread=2.0,
            build_seconds=self.build,
            boot_seconds=self.boot,
            run_seconds=self.run,
        )
        return SyntheticLab(linear(self.commits), model, {self.commits // 3: self.effect}, seed=18)

    def pace(self) -> Pace:
        """Return how long its actions take here."""
        return Pace(self.build * self.scale, self.boot * self.scale, self.run * self.scale)


def _time(kind: type, name: str, log: list[tuple[float, float]]) -> None:
    """Keep when each call of a method began and ended."""
    inner: Callable[..., Any] = getattr(kind, name)

    def timed(*words: Any) -> Any:
        begun = time.monotonic()
        try:
            return inner(*words)
        finally:
            log.append((begun, time.monotonic()))

    setattr(kind, name, timed)


def _write(path: Path, log: list[tuple[float, float]]) -> None:
    while True:
        time.sleep(0.5)
        cpu = sum(os.times()[:2])
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps({"cpu": cpu, "busy": log[:]}))
        draft.replace(path)


def main() -> int:
    settings = Settings(**json.loads(os.environ["LAB"]))
    busy: list[tuple[float, float]] = []
    _time(FakeTestbed, "boot", busy)
    _time(FakeSession, "run", busy)
    services = fake.services

    def scaled(*words: Any, **more: Any) -> Any:
        return services(*words, **{**more, "pace": settings.pace(), "builders": settings.builders})

    fake.services = scaled
    fake.a_lab = lambda *_: settings.lab()
    schedule._EQUAL_SECONDS *= settings.scale
    threading.Thread(target=_write, args=(Path(sys.argv[2]) / "busy", busy), daemon=True).start()
    return fake_worker.main()


if __name__ == "__main__":
    leave(main())
