"""The play that builds on a builder: again and again while others build in the same folder there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.build_progress import BuildProgress
from bisector.adapters.build.builder_clock import require_clock
from bisector.adapters.build.kernel_cache import parse_facts
from bisector.adapters.build.probe import BuilderFacts
from bisector.ports import Progress

BUILD_SECONDS = 4 * 3600.0
"""Far above any build seen (minutes): a longer build is taken as a hang."""

_FIRST_WAIT_SECONDS = 1
"""How long the first play waits for the builder's folder before it says who has it."""

_WAIT_SECONDS = 30
"""How long each further play waits for it: a play costs 2 s of a CPU, a build takes minutes."""


@dataclass(frozen=True, slots=True)
class BuildPlay:
    """`playbooks/build.yml` on one builder. user: who we are, for others who wait; folder: for the logs."""

    ansible: Ansible
    host: str
    builder: BuilderFacts
    user: str
    folder: Path
    timeout: float = BUILD_SECONDS

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
        the builder, by other names.
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
                    "perfbisect_build": {**build, "PB_WAIT": str(wait), "PB_HOLDER": holder},
                },
                folder=self.folder,
                timeout=self.timeout,
                progress=progress,
            )
            facts = parse_facts(str(played.result("building").get("stdout", "")))
            played.log.unlink(missing_ok=True)
            if facts.get("status") != "busy":
                require_clock(self.host, facts)
                return facts
            other = facts.get("holder") or "another process"
            if other != told:
                progress(f"waiting for '{self.host}': {other} builds in {self.builder.folder}/builder")
            wait, told = _WAIT_SECONDS, other
            variables = {**variables, "perfbisect_pack": ""}  # the source is there by now
