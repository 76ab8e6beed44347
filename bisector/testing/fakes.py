"""Seeded fakes of source, builder and clock, for tests and for trying a planner without a kernel.

All values are drawn in `simulation.noise_model.SyntheticLab`. A draw depends on the seed and on what is
drawn: a process that is killed and started again gets the same values. `Faults` plans errors, `Pace` makes
actions take time; without them nothing fails and nothing waits. The fake testbed is in `fake_testbed`.

    lab = SyntheticLab(graph, LabModel(run_noise=1.0), {40: 8.0}, seed=1)
    builder = FakeBuilder(lab, folder)
    testbed = FakeTestbed("fake", lab)
    kernel = builder.build(BuildOrder(graph.shas[3], "fake"), print)
    session = testbed.boot(kernel, job(folder), folder, print)
    session.run(0).values  # {'simulated': 99.3...}
"""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bisector.errors import BuildFailed, Interrupted, RequestError, nearest
from bisector.model.commit_graph import CommitGraph
from bisector.model.goal import TERMS, Terms
from bisector.ports import BuildOrder, CommitInfo, Kernel, Progress
from bisector.simulation.noise_model import SyntheticLab

METRIC = "simulated"
"""The one metric that fake runs give, in the unit 's'."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Real seconds that each action takes, so that a test can kill a process in the middle of one."""

    build: float = 0.0
    boot: float = 0.0
    run: float = 0.0


class Faults:
    """Errors that the fakes raise.

    build, boot, run, monitor, give_back: number of a call (from 1, over all fakes with this object) -> its
    error.
    no_workload: commits whose workload fails in every run; no_metric: commits whose runs print another
    metric; nan: commits whose runs print NaN, which is refused as a real testbed refuses it.
    """

    def __init__(
        self,
        *,
        build: Mapping[int, Exception] | None = None,
        boot: Mapping[int, Exception] | None = None,
        run: Mapping[int, Exception] | None = None,
        monitor: Mapping[int, Exception] | None = None,
        give_back: Mapping[int, Exception] | None = None,
        no_workload: Sequence[int] = (),
        no_metric: Sequence[int] = (),
        nan: Sequence[int] = (),
    ) -> None:
        planned = {"build": build, "boot": boot, "run": run, "monitor": monitor, "give back": give_back}
        self._planned = {action: dict(errors or {}) for action, errors in planned.items()}
        self._calls = {action: itertools.count(1) for action in planned}
        self._lock = threading.Lock()
        self.no_workload, self.no_metric, self.nan = set(no_workload), set(no_metric), set(nan)

    def raise_planned(self, action: str) -> None:
        """Count a call at 'build', 'boot', 'run', 'monitor' or 'give back'; raise what is planned for it."""
        with self._lock:
            error = self._planned[action].pop(next(self._calls[action]), None)
        if error is not None:
            raise error


class FakeClock:
    """ports.Clock that moves by a second each time it is read."""

    def __init__(self) -> None:
        self._now = 1.0e9
        self._lock = threading.Lock()

    def now(self) -> float:
        """Return seconds since the epoch."""
        with self._lock:
            self._now += 1.0
            return self._now


class FakeSource:
    """ports.Source over a graph. names: tag or branch -> index of its commit."""

    def __init__(self, graph: CommitGraph, names: Mapping[str, int] | None = None) -> None:
        self._graph = graph
        self._names = dict(names or {"good": graph.good, "bad": graph.bad})

    def resolve(self, rev: str) -> str:
        """Return the full id of a name or of the unique beginning of an id. Raises RequestError."""
        if rev in self._names:
            return self._graph.shas[self._names[rev]]
        matching = [sha for sha in self._graph.shas if rev and sha.startswith(rev)]
        if len(matching) != 1:
            raise RequestError(f"unknown commit '{rev}'{nearest(rev, self._names)}")
        return matching[0]

    def names(self) -> Sequence[str]:
        """Return the names of tags and branches."""
        return list(self._names)

    def graph(
        self,
        good: str,
        bad: str,
        *,
        first_parent: bool = False,
        paths: Sequence[str] = (),
        skip: Sequence[str] = (),
        terms: Terms = TERMS["regression"],
    ) -> CommitGraph:
        """Return the graph with the skipped commits marked; only its own ends can be asked for.

        Its commits touch no paths, and first_parent is refused: a fake history has one shape.
        """
        if good == bad:
            raise RequestError("good and bad are the same commit")
        if (good, bad) != (self._graph.shas[self._graph.good], self._graph.shas[self._graph.bad]):
            raise RequestError("a fake history has only its own two ends")
        if first_parent or paths:
            raise RequestError("a fake history knows neither --first-parent nor paths")
        index = {sha: i for i, sha in enumerate(self._graph.shas)}
        skipped = {index[self.resolve(rev)]: "skipped by the user" for rev in skip}
        return replace(self._graph, untestable={**self._graph.untestable, **skipped})

    def infos(self, shas: Sequence[str], *, described: Container[str] = ()) -> list[CommitInfo]:
        """Return an invented subject, author and distance from a tag for each."""
        found = []
        for sha in shas:
            number = self._graph.shas.index(self.resolve(sha))
            place = f"v0.1-{number}-g{sha[:12]}" if sha in described else ""
            subject, author = f"fake: change number {number}", "Fake Author <fake@example.org>"
            found.append(CommitInfo(sha, subject, author, 1e9 + number, place))
        return found

    def holds_linux(self, sha: str) -> bool:
        """Return whether the commit is not marked as one of an imported project."""
        return self._graph.untestable.get(self._graph.shas.index(self.resolve(sha))) != "not a Linux tree"

    def notes(self) -> tuple[str, ...]:
        """Return nothing: a fake history has no work tree."""
        return ()


class FakeBuilder:
    """ports.Builder whose kernels are small files in `folder`; the next process finds them there.

    `folder`/builds.log gets one line for every build that ended well.
    """

    def __init__(
        self,
        lab: SyntheticLab,
        folder: Path,
        *,
        faults: Faults | None = None,
        pace: Pace | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._lab, self._folder, self._stop = lab, folder, stop
        self._faults, self._pace = faults or Faults(), pace or Pace()
        self._index = {sha: i for i, sha in enumerate(lab.graph.shas)}
        folder.mkdir(parents=True, exist_ok=True)

    def build(self, order: BuildOrder, progress: Progress) -> Kernel:
        """Build or fetch from the cache. Raises BuildFailed where the lab or the faults say so."""
        known = self.cached(order)
        if known is not None:
            return known
        self._faults.raise_planned("build")
        commit = self._index[order.sha]
        progress("compiling")
        end = time.monotonic() + self._pace.build
        while (left := end - time.monotonic()) > 0:
            if self._stop():
                raise Interrupted("the build was stopped on request")
            time.sleep(min(left, 0.05))
        if self._lab.untestable.get(commit) == "build":
            raise BuildFailed("a fake compiler error", details="fake.c:1: error: expected ';'")
        image, draft = self._image(order), self._folder / f".{threading.get_ident()}"
        draft.write_text(json.dumps({"commit": commit, "layout": order.layout}), encoding="utf-8")
        draft.replace(image)  # whole or not at all
        with (self._folder / "builds.log").open("a", encoding="utf-8") as log:
            log.write(f"{image.name}\n")
        return self._kernel(order, cached=False)

    def cached(self, order: BuildOrder) -> Kernel | None:
        """Return the kernel if it is in the cache already."""
        return self._kernel(order, cached=True) if self._image(order).exists() else None

    def _image(self, order: BuildOrder) -> Path:
        text = "\0".join((order.sha, order.recipe, str(order.layout), *map(str, order.patches)))
        return self._folder / hashlib.sha256(text.encode()).hexdigest()[:16]

    def _kernel(self, order: BuildOrder, *, cached: bool) -> Kernel:
        image, binary = self._image(order), self._lab.binary(self._index[order.sha], order.layout)
        return Kernel(
            sha=order.sha,
            recipe=order.recipe,
            binary=binary,
            image=image,
            config=image,
            log=image,
            release=f"0.0.0-{binary}",
            build_id=hashlib.sha256(binary.encode()).hexdigest()[:40],
            seconds=self._lab.model.build_seconds,
            cached=cached,
            options={"FAKE": "y"},
            toolchain="none",
            key=image.name,
        )
