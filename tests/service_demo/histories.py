"""What the nights of the demo measure: a repository, and the commit that its branch is at in each night."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.small_history import CHANGES, git, make

BRANCH = "nightly"

QUIET_NIGHTS = 13
"""Nights before the regression. A baseline takes five; then eight more tell what a night is worth
(`night_contrasts.MIN_BEFORE`, `MIN_SCALE_NIGHTS`)."""
_AFTER = 4
"""Nights from the regression on, at most: a step of 5% is a suspect in its second."""


@dataclass(frozen=True)
class History:
    """repo: with the branch BRANCH; tips: where it is, night by night; culprit: full id of a commit.

    copied: how many nights after the first are not measured but have its level, scattered a little.
    """

    repo: Path
    tips: Sequence[str]
    culprit: str
    copied: int = 0

    def advance(self, night: int) -> None:
        """Let the branch be where it is in a night. night: from 0 on."""
        git(self.repo, "update-ref", f"refs/heads/{BRANCH}", self.tips[night])


def tiny(folder: Path, demo: Path) -> History:
    """Return three commits of a single file each after the demo's base, and the second of them is slower.

    Of the quiet nights the first alone is measured, at the base, whose kernel other tests have built.
    """
    harmless = [change for change in CHANGES if change.kind == "harmless" and change.path != "init/main.c"]
    slow = next(change for change in CHANGES if change.kind == "slow")
    ids = list(make(folder / "linux", demo, [harmless[0], slow, harmless[-1]], "night").values())
    tips = [ids[0]] * QUIET_NIGHTS + [ids[3]] * _AFTER
    return History(folder / "linux", tips, ids[2], copied=QUIET_NIGHTS - 1)


def real(folder: Path, demo: Path) -> History:
    """Return the PREEMPT_RT series of the demo, one commit a night after some quiet ones."""
    repo = folder / "linux"
    git(folder, "clone", "--quiet", "--bare", "--shared", str(demo), str(repo))
    ids = [git(repo, "rev-parse", f"rt-{number:02d}^{{commit}}").strip() for number in range(17)]
    culprit = 10
    quiet = max(0, QUIET_NIGHTS - culprit)
    return History(repo, [*[ids[0]] * quiet, *ids[: culprit + _AFTER]], ids[culprit])
