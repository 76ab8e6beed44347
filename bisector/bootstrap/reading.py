"""What other programs left behind, read for a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bisector.core.samples import SampleSet


def read_results(place: str) -> list[SampleSet]:
    """Read what another program measured: a file, a folder, or '-'. Raises RequestError."""
    from bisector.adapters.results import read

    return read(place)
