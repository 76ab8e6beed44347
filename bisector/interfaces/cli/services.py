"""What commands ask of the composition root. Imported inside commands only: it pulls in the adapters."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bisector.app import single_run, wiring
from bisector.app.bisections import Stored as Stored

if TYPE_CHECKING:
    from bisector.schemas.settings import Settings

store = wiring.store
source = wiring.source
lab = wiring.lab
planner = wiring.planner


def build(
    settings: Settings,
    rev: str,
    recipe: str,
    layout: int,
    patches: tuple[Path, ...],
    with_fix: Sequence[str],
    progress: Callable[[str], None],
    note: Callable[[str], None],
) -> Any:  # noqa: ANN401 - ports.Kernel, which interfaces may not name
    """Build one commit, or take it from the cache. note: told whether it needs the fixes."""
    repo = settings.repo or Path.cwd()
    sha = source(settings, repo).resolve(rev)
    fixes = single_run.known_fixes(repo, with_fix)
    for fix in fixes:
        need = "needs" if single_run.needed_fixes(repo, sha, [fix]) else "does not need"
        note(f"{sha[:12]} {need} the fix {fix.sha[:12]}")
    order = single_run.order(sha, recipe, layout, patches, fixes)
    return wiring.builder(settings, repo, lab(settings)).build(order, progress)


def cached_kernel(settings: Settings, rev: str, recipe: str) -> Any:  # noqa: ANN401 - the same, or None
    """Return the kernel of a commit if it was built before."""
    repo = settings.repo or Path.cwd()
    sha = source(settings, repo).resolve(rev)
    return wiring.builder(settings, repo, lab(settings)).cached(single_run.order(sha, recipe))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a machine of the lab said. wrong: why it is not usable, empty if it is."""

    name: str
    wrong: str
    details: str
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether it can be used."""
        return not self.wrong


def check_lab(settings: Settings) -> list[Answer]:
    """Ask every machine of the lab whether it is usable."""
    from bisector.errors import PerfbisectError

    found = []
    the_lab = lab(settings)
    for name, check in wiring.lab_checks(settings, the_lab):
        started = time.monotonic()
        try:
            check()
            wrong, details = "", ""
        except PerfbisectError as error:
            wrong, details = error.message, "\n".join(filter(None, (error.details, error.cure)))
        found.append(Answer(name, wrong, details, time.monotonic() - started))
    return found


def keep_host(settings: Settings, bisection: str) -> None:
    """Write down what this machine is, once a bisection: the report must not describe a later one."""
    path = settings.state_dir / "bisections" / bisection / "host.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(wiring.host_description(), indent=2) + "\n", encoding="utf-8")
