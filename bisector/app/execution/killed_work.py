"""Leftovers of a killed perfbisect on this host: running programs and temporary files."""

from __future__ import annotations

from pathlib import Path


def end_killed_work(cache: Path) -> None:
    """End and remove what killed processes left in a cache folder; the work of living ones stays.

    To be called before anything is built: an orphaned build holds the builder's source tree and changes it.
    Raises InfrastructureError.
    """
    from bisector.adapters.ansible.runner import TEMPORARY_PREFIX, temporary_parent
    from bisector.adapters.artefacts import exchange
    from bisector.adapters.build.kernel_cache import WORKSPACE_PREFIX
    from bisector.adapters.system import leftovers, orphans

    orphans.end_orphans()
    leftovers.remove_leftovers(TEMPORARY_PREFIX, temporary_parent())
    for folder in (cache / "artefacts", cache / "kernels"):
        leftovers.remove_leftovers(exchange.TEMPORARY_PREFIX, folder)
    leftovers.remove_leftovers(WORKSPACE_PREFIX, cache / "kernels")
