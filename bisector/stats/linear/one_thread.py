"""Linear algebra on one thread.

The matrices of a decision have some hundred rows. The threads that NumPy's library starts for them wait for
each other by spinning, and where other work has the processors they wait for long: with them the decisions
of a search took three times the CPU time, and the longest 0.84 s in place of 0.09 s (two cores, load 15).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy.linalg  # noqa: F401  it loads NumPy's library, which is looked for below
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")


@functools.cache
def _libraries() -> ThreadpoolController:
    """Return the libraries for linear algebra that are loaded; to look for them takes some milliseconds."""
    return ThreadpoolController()


def on_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with linear algebra on one thread during each call. Numbers do not change by it."""

    @functools.wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with _libraries().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited
