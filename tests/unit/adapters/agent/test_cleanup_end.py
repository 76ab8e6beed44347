"""What is said of a workload's cleanup that fails, and of none that ends well."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bisector.adapters.agent.cleanup_end import await_cleanup
from bisector.adapters.system.channel import LineClosed, LineSilent
from bisector.ports import Job, MetricSpec


class Line:
    """Gives the lines, then is silent, or closed where the last is None."""

    def __init__(self, *lines: str | None) -> None:
        self._lines: Iterator[str | None] = iter(lines)

    def send(self, text: str) -> None:
        raise AssertionError(text)

    def receive(self, timeout: float) -> str:
        try:
            line = next(self._lines)
        except StopIteration:
            raise LineSilent("nothing") from None
        if line is None:
            raise LineClosed("ended")
        return line

    def close(self) -> None:
        raise AssertionError


JOB = Job("toy", Path(), ("toy",), (MetricSpec("real", "s"),), timeout=0.2, cleanup=True)


def test_a_good_end_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    await_cleanup(Line("unmounted", '{"cleaned":0}'), JOB)
    assert caplog.text == ""


def test_a_failure_is_told_with_the_last_words(caplog: pytest.LogCaptureFixture) -> None:
    chatter = [f"line {n}" for n in range(50)]
    await_cleanup(Line(*chatter, "\x1b[31mbusy", '{"cleaned":32}'), JOB)
    (message,) = caplog.messages
    assert message.startswith("warning: the cleanup of the workload 'toy' failed (code 32)")
    assert "line 49" in message and "line 40\n" not in message
    assert "busy" in message and "\x1b" not in message


def test_one_that_does_not_end_is_told(caplog: pytest.LogCaptureFixture) -> None:
    await_cleanup(Line("waiting"), JOB)
    assert "did not end within 0 s" in caplog.text


def test_an_agent_that_says_nothing_of_it_is_one_of_before(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(LineClosed):
        await_cleanup(Line(None), JOB)
    assert caplog.text == ""
