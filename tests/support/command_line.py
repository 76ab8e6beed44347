"""The command line in tests: only parsed, or carried out with fakes for kernels, guests and time."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer.main

from bisector.app import accept, find_culprit
from bisector.app.artefacts import shared_files
from bisector.app.attempts import accept_attempt
from bisector.app.packages import accept_kernels
from bisector.app.planners import planner_of
from bisector.app.wiring import Wiring
from bisector.interfaces.cli import run
from bisector.interfaces.cli.application import application
from bisector.model.commit_graph import CommitGraph
from bisector.model.goal import Budget
from bisector.simulation.noise_model import LabModel
from bisector.testing.fakes import FakeSource, Faults
from tests.support import fake_bisection as fake

START = ["start", "--repo", "/fake", "--good", "good", "--bad", "bad", "--workload", "pipe-test"]


EXACT = LabModel(
    run_noise=0.0, background=0.1, clock="instructions", build_seconds=60, boot_seconds=10, run_seconds=2
)


class Bench:
    """The composition root with fakes in it; settings of a test come before `run`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state = folder / "state"
        self.lab = fake.a_lab(model=EXACT)
        self.faults: Faults | None = None
        self.budget: Budget | None = None
        for module in (accept, accept_kernels):
            monkeypatch.setattr(module, "accept", self._accept)
        monkeypatch.setattr(find_culprit, "bisection_services", self._services)
        monkeypatch.setattr(find_culprit, "require_ready", lambda *_: None)
        monkeypatch.setattr(accept_attempt, "recipe_sum", lambda *_: "")
        monkeypatch.setattr(Wiring, "source", lambda wiring, repo=None: FakeSource(self.lab.graph))

    def _accept(self, wiring: object, request: Any) -> tuple[Any, CommitGraph]:
        accepted = fake.accepted(self.lab, budget=self.budget)
        chosen = request.model_copy(update={"recipe": accepted.request.recipe})  # never 'auto' once accepted
        return accepted.model_copy(update={"request": chosen}), self.lab.graph

    def _services(self, wiring: Any, accepted: Any, stop: object, names: object = None) -> Any:
        services = fake.services(self.lab, self.state, store=wiring.store, faults=self.faults, warmup=1)
        services = replace(
            services,
            coordinator=wiring.shared_coordinator,
            keep_boot=partial(shared_files.keep_boot, wiring),
        )
        return replace(services, planner=planner_of(wiring, accepted)) if accepted.attempt else services


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    found = run(arguments)
    out, err = capsys.readouterr()
    assert found == code, err
    return out


def parse(line: str) -> None:
    """Parse a command line: unknown commands, options and missing arguments raise."""
    command: Any = typer.main.get_command(application())
    name, *rest = shlex.split(line)
    context = command.make_context(name, rest)
    while getattr(command, "commands", None) and (rest := _left(context)):
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, list(rest))


def _left(context: Any) -> list[str]:
    return [*getattr(context, "_protected_args", ()), *context.args]
