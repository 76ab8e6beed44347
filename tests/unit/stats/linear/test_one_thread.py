"""Linear algebra on one thread."""

from __future__ import annotations

import numpy.linalg  # noqa: F401  its library has the threads
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from bisector.stats.linear.one_thread import on_one_thread


def threads(scale: int = 1) -> set[int]:
    """Return the numbers of threads that the libraries for linear algebra use now, times the scale."""
    return {of["num_threads"] * scale for of in threadpool_info() if of["user_api"] == "blas"}


def test_a_call_has_one_thread_and_leaves_as_many_as_before() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        assert threads() == {2}
        assert on_one_thread(threads)(scale=3) == {3}
        assert threads() == {2}


def test_an_error_gives_the_threads_back() -> None:
    @on_one_thread
    def fail() -> None:
        raise ValueError("no")

    with threadpool_limits(limits=2, user_api="blas"):
        with pytest.raises(ValueError, match="no"):
            fail()
        assert threads() == {2}
