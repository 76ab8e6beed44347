"""A toy kernel's history and recipe with two builders: one shares this machine's files, one does not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.builder import KernelBuilder
from bisector.ports import BuildOrder
from bisector.resources import resource
from tests.support.toy_kernel import BUILDERS, ToyHistory, write_recipes

INVENTORY = (
    BUILDERS
    + """\
        far:
          ansible_connection: local
          perfbisect_shares_files: false
          perfbisect_folder: {folder}
"""
)


class BuildLab:
    """A toy history, a toy recipe, and builders over them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.history = ToyHistory.create(root / "repo")
        self.base = self.history.git("rev-parse", "HEAD").strip()
        self.kernels = write_recipes(root / "kernels")
        self.inventory = root / "lab.yml"
        self.inventory.write_text(INVENTORY.format(folder=root / "far"))
        self.progress: list[str] = []

    def change(self, files: Mapping[str, str | None], message: str) -> str:
        """Make a commit on top of the base, whatever other tests have made."""
        self.history.git("checkout", "--quiet", "--force", "--detach", self.base)
        return self.history.commit(files, message)

    def builder(self, host: str = "here", cache: Path | None = None) -> KernelBuilder:
        ansible = Ansible(resource("playbooks"), self.inventory)
        return KernelBuilder(
            self.history.path, cache or self.root / "cache", ansible, host=host, kernels=self.kernels
        )

    def order(self, sha: str, **more: object) -> BuildOrder:
        return BuildOrder(sha, "toy", **more)  # type: ignore[arg-type]

    def links(self, folder: Path) -> int:
        """How often the toy kernel has been linked: how many builds really took place."""
        file = folder / "builder" / "out" / "toy-0" / "links"
        return len(file.read_text().splitlines()) if file.exists() else 0
