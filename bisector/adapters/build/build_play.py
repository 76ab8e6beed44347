"""The play that builds on a builder: again and again while others build in the same folder there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.build_progress import BuildProgress
from bisector.adapters.build.builder_clock import require_clock
from bisector.adapters.build.kernel_cache import parse_facts
from bisector.adapters.build.probe import BuilderFacts
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.errors import BuilderUnwell
from bisector.ports import Progress

BUILD_SECONDS = 4 * 3600.0
"""Far above any build seen (minutes): a longer build is taken as a hang. The builder ends it by itself, for
its master may be gone."""

_SLACK_SECONDS = 1800.0
"""Time for all else that a play does while it has the folder. A pack of all the source is 250 MB, a kernel
with all modules and symbols has a GiB: 20 minutes over a line of 1 MB/s."""

_FIRST_WAIT_SECONDS = 1
"""How long the first play waits for the builder's folder before it says who has it."""

_WAIT_SECONDS = 30
"""How long each further play waits for it: a play costs 2 s of a CPU, a build takes minutes."""


@dataclass(slots=True)
class FolderHolder:
    """The holder of a builder's folder, and since when: one object for all builds of a builder."""

    name: str = ""
    _since: float = 0.0

    def seconds(self, name: str) -> float:
        """Return how long this one has been seen to have the folder."""
        if name != self.name:
            self.name, self._since = name, awake_seconds()
        return awake_seconds() - self._since


@dataclass(frozen=True, slots=True)
class BuildPlay:
    """`playbooks/build.yml` on one builder.

    user: who we are, for others who wait; folder: for the logs; timeout: of one build, on the builder; other:
    who had the builder's folder when it was asked last.
    """

    ansible: Ansible
    host: str
    builder: BuilderFacts
    user: str
    folder: Path
    timeout: float = BUILD_SECONDS
    other: FolderHolder = field(default_factory=FolderHolder)

    def play(
        self,
        build: Mapping[str, str],
        variables: Mapping[str, Any],
        usual_files: int,
        progress: Progress,
    ) -> dict[str, str]:
        """Play until the builder's folder was ours; return the facts of the build.

        build: what build.sh is told; variables: further ones of the playbook; usual_files: what a build from
        nothing compiles, 0 if unknown. The folder is locked on the builder: another master may know it, and
        the builder, by other names. Raises BuilderUnwell where one build has the folder for longer than any
        may take.
        """
        ours = Path(self.builder.folder) if self.builder.here else None
        wait, told = _FIRST_WAIT_SECONDS, ""
        while True:
            holder = f"{self.user}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
            watch = BuildProgress(ours, build["PB_OUT"], holder, usual_files, progress, self.ansible.stop)
            played = replace(self.ansible, stop=watch).play(
                "build",
                limit=self.host,
                variables={
                    **variables,
                    "perfbisect_build": {
                        **build,
                        "PB_WAIT": str(wait),
                        "PB_HOLDER": holder,
                        "PB_SECONDS": str(math.ceil(self.timeout)),
                    },
                },
                folder=self.folder,
                timeout=self.timeout + _SLACK_SECONDS,
                progress=progress,
            )
            facts = parse_facts(str(played.result("building").get("stdout", "")))
            played.log.unlink(missing_ok=True)
            if facts.get("status") != "busy":
                self.other.name = ""
                require_clock(self.host, facts)
                return facts
            other = facts.get("holder") or "another process"
            self._require_end(other)
            if other != told:
                progress(f"waiting for '{self.host}': {other} builds in {self.builder.folder}/builder")
            wait, told = _WAIT_SECONDS, other
            variables = {**variables, "perfbisect_pack": ""}  # the source is there by now

    def _require_end(self, other: str) -> None:
        """Raise BuilderUnwell if another's build has had the folder for longer than any build may take."""
        seconds = self.other.seconds(other)
        if seconds > self.timeout + _SLACK_SECONDS:
            lock = f"{self.builder.folder}/builder/lock"
            raise BuilderUnwell(
                f"the builder '{self.host}' is held for {seconds / 3600:.1f} h by one build, of {other}",
                details=f"a build may take {self.timeout / 3600:.1f} h; what holds {lock} there does not end",
                cure=f"end that there ('fuser -v {lock}' names it); the builder is tried again by itself",
            )
