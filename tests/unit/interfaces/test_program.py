"""Ctrl-C at any moment of a command prints one line, however early or often it comes."""

from __future__ import annotations

import signal
import subprocess
import sys

_READING = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "bisector.interfaces.cli":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from bisector.interfaces.program import main
main()
"""

_AGAIN = """
import os, signal
from bisector.interfaces import cli
from bisector.interfaces.cli import output
def interrupt(*_): os.kill(os.getpid(), signal.SIGINT)
output.print_error = interrupt
cli.application = interrupt
cli.main()
"""


_HEARD = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""Children of a shell's background processes, such as tests in CI, ignore Ctrl-C."""


def _run(code: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", _HEARD + code], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_ctrl_c_while_modules_are_read_is_no_traceback() -> None:
    assert _run(_READING) == (130, "error: interrupted\n")


def test_ctrl_c_while_ctrl_c_is_told_is_no_traceback() -> None:
    assert _run(_AGAIN) == (130, "")


def test_where_a_shell_ignores_ctrl_c_it_stays_ignored() -> None:
    code = f"import signal; signal.signal({int(signal.SIGINT)}, signal.SIG_IGN)\n" + _READING.replace(
        "\nmain()", "\nsys.argv = ['perfbisect', '--version']\nmain()"
    )
    assert _run(code) == (0, "")


_IN_A_CLASS = """
import os, signal
from bisector.interfaces import cli
class Named:
    def __set_name__(self, *_): os.kill(os.getpid(), signal.SIGINT)
def application(name): type("Reads", (), {"member": Named()})
cli.application = application
cli.main()
"""


def test_ctrl_c_while_a_class_is_defined_is_no_defect() -> None:
    """Python made a RuntimeError of it, and the user was asked to report a defect."""
    assert _run(_IN_A_CLASS) == (130, "error: interrupted\n")
