"""What `perfbisect kernel` asks of the composition root. Imported inside commands only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bisector.app import kernels as kept
from bisector.app import single_run, wiring
from bisector.app.bisections import ENDED
from bisector.model.records import Built

if TYPE_CHECKING:
    from bisector.schemas.settings import Settings


def kernel_plan(
    settings: Settings, rev: str, recipe: str, patches: tuple[Path, ...] = (), with_fix: Sequence[str] = ()
) -> Any:  # noqa: ANN401
    """Return how a commit is built (`BuildPlan`), and for each fixup whether it changes anything there."""
    repo = settings.repo or Path.cwd()
    sha = wiring.source(settings, repo).resolve(rev)
    fixes = single_run.known_fixes(repo, with_fix)
    return kept.kernel_plan(settings, repo, single_run.order(sha, recipe, 0, patches, fixes))


def check_range(
    settings: Settings, good: str, bad: str, recipe: str | None, *, install: bool
) -> dict[str, Any]:
    """Return what a user should know before a range is searched; install what builders lack if asked to."""
    repo = settings.repo or Path.cwd()
    repository = wiring.source(settings, repo)
    ends = [repository.resolve(rev) for rev in (good, bad)]
    return kept.check_range(settings, repo, ends[0], ends[1], recipe or settings.recipe, install=install)


def kernels(settings: Settings) -> dict[str, Any]:
    """Return the kernels of the cache, the latest used first, and what the compiler cache was good for."""
    return kept.kernels(settings)


def collect_kernels(settings: Settings, limit_bytes: int) -> tuple[int, int]:
    """Remove kernels until the limit holds; return the bytes freed, and how many are needed and stay."""
    needed: set[str] = set()
    if (settings.state_dir / "perfbisect.sqlite").exists():
        memory = wiring.store(settings)
        for stored in memory.list():
            if stored.status not in ENDED:
                for _, record in memory.records(stored.id):
                    if isinstance(record, Built) and record.kernel is not None:
                        needed.add(record.kernel.key)
    return kept.collect_kernels(settings, limit_bytes, frozenset(needed - {""}))
