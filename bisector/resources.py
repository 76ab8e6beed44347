"""Where the data folders live: beside the package in a checkout, inside it when installed as a wheel."""

from __future__ import annotations

from pathlib import Path

from bisector.errors import InfrastructureError

_PACKAGE = Path(__file__).resolve().parent


def resource(name: str) -> Path:
    """Return the folder 'playbooks', 'kernels', 'workloads' or 'packaging'.

    Raises InfrastructureError if it is gone. Beside an installed package lie other packages, such as PyPI's
    'packaging': the folders inside it come first.
    """
    for root in (_PACKAGE / "_data", _PACKAGE.parent):
        if (root / name).is_dir():
            return root / name
    raise InfrastructureError(
        f"the folder '{name}' is missing from this installation", cure="install it again"
    )
