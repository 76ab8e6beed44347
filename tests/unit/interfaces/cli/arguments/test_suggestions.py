"""What is suggested in place of a command or an option that does not exist."""

from __future__ import annotations

import pytest

from bisector.interfaces.cli import run


@pytest.mark.parametrize(
    ("line", "error", "cure"),
    [
        (
            "scan",  # 'cancel' was suggested, and for 'run' 'prune'
            "there is no command 'scan'; did you mean 'start --scan'?",
            "'perfbisect --help' says what it understands",
        ),
        (
            "run",
            "there is no command 'run'; did you mean 'workload run' or 'series run' or 'start --run'?",
            "'perfbisect --help' says what it understands",
        ),
        (
            "good v1",
            "there is no command 'good'; did you mean 'mark ID REV good'?",
            "'perfbisect --help' says what it understands",
        ),
        (
            "xyzzy",
            "there is no command 'xyzzy'",
            "'perfbisect --help' says what it understands",
        ),
        (
            "alert lst",
            "'perfbisect alert' has no command 'lst'; did you mean 'list'?",
            "'perfbisect alert --help' says what it understands",
        ),
        (
            "plan --goood v1",  # '--old' was suggested, too
            "'perfbisect plan' has no option '--goood'; did you mean '--good'?",
            "'perfbisect plan --help' says what it understands",
        ),
        (
            "alert list --server http://x",
            "'perfbisect alert list' has no option '--server'",
            "write it before the command: perfbisect --server ... alert list",
        ),
        (
            "--serv http://x list",
            "'perfbisect' has no option '--serv'; did you mean '--server'?",
            "'perfbisect --help' says what it understands",
        ),
    ],
)
def test_what_may_have_been_meant(
    line: str, error: str, cure: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(line.split()) == 1
    assert capsys.readouterr().err == f"error: {error}\ncure: {cure}\n"
