"""`--kernels LIST` among the options of a request: what it sets, and what it excludes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bisector.errors import RequestError


def instead_of_commits(values: Mapping[str, Any], repo: Path | None) -> dict[str, str]:
    """Return what a list of kernels sets in a request, if there is one. Raises RequestError.

    values: of the options, by name; repo: as it was said.
    """
    if values["kernels"] is None:
        return {}
    for option, given in (("--repo", repo), ("--recipe", values["recipe"])):
        if given is not None:
            raise RequestError(
                f"--kernels and {option} exclude each other: nothing is built", cure="leave one of them out"
            )
    path = str(Path(values["kernels"]).expanduser().absolute())
    return {"kernels": path, "repo": path}
