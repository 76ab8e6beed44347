"""Builders whose clock is wrong, by a `date` that says what such a clock would."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import pytest

from bisector.engine import build_queue
from bisector.engine.build_queue import BuildQueue
from bisector.errors import BuilderUnwell
from tests.support.toy_kernel import MAKEFILE, BuildLab, tools_missing
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(bool(tools_missing()), reason=f"not installed: {tools_missing()}")

_DATE = """#!/bin/sh
[ -z "$PB_FOLDER" ] || [ ! -e "$PB_FOLDER/wrong-clock" ] || set -- -d '1 hour' "$@"
exec /bin/date "$@"
"""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BuildLab:
    """Builders whose clocks are an hour ahead while their folder has a file 'wrong-clock'."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "date").write_text(_DATE)
    (tmp_path / "bin" / "date").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setattr(build_queue, "_OUT_SECONDS", 0.1)
    return BuildLab(tmp_path)


def _work(number: int) -> dict[str, str]:
    return {"kernel/work.c": f"int work(int x) {{ return x * {number}; }}\n"}


def test_a_builder_with_a_wrong_clock_is_taken_out_and_goes_back_by_itself(lab: BuildLab) -> None:
    own = lab.root / "own"
    own.mkdir()
    (own / "wrong-clock").touch()
    queue = BuildQueue([lambda stop: lab.builder(cache=own), lambda stop: lab.builder()], lambda: False)
    number = 4

    def builders() -> set[bool]:
        """Have two kernels built; return which builders did it, True for the one whose clock was wrong."""
        nonlocal number
        changes = [lab.change(_work(number + more), f"work {number + more}") for more in (1, 2)]
        number += 2
        builds = [queue.order(lab.order(sha), lab.progress.append) for sha in changes]
        kernels = [queue.wait(build) for build in builds]
        return {kernel.image.is_relative_to(own) for kernel in kernels if kernel is not None}

    assert builders() == {False}
    refused = r"the clock of the builder 'here' is 3[56]\d\d s ahead of ours: it is taken out for"
    assert [text for text in lab.progress if re.match(refused, text)]
    (own / "wrong-clock").unlink()
    until(lambda: True in builders(), 120)
    queue.close()


def test_nothing_is_built_under_a_wrong_clock_and_used_later(lab: BuildLab) -> None:
    """Builders keep what they have built, for masters that come back late."""
    (lab.root / "cache").mkdir()
    wrong = lab.root / "cache" / "wrong-clock"
    wrong.touch()
    linked: list[int] = []

    def tell(text: str) -> None:
        lab.progress.append(text)
        if "no builder is well" in text:
            linked.append(lab.links(lab.root / "cache"))
        if len(linked) == 2:
            wrong.unlink(missing_ok=True)

    queue = BuildQueue([lambda stop: lab.builder()], lambda: False)
    kernel = queue.wait(queue.order(lab.order(lab.base), tell))
    queue.close()
    assert kernel is not None
    assert linked == [0, 0]
    assert lab.links(lab.root / "cache") == 1


def test_what_was_built_while_a_clock_was_set_wrong_is_not_used(lab: BuildLab) -> None:
    slow = MAKEFILE.replace('@echo "  LD      vmlinux"', '@echo "  LD      vmlinux"; sleep 4')
    order = lab.order(lab.change({"Makefile": slow}, "slow to link"))
    log = lab.root / "cache" / "builder" / "work" / "tuxmake" / "build.log"
    wrong = lab.root / "cache" / "wrong-clock"

    def set_wrong() -> None:
        until(lambda: log.exists() and "LD      vmlinux" in log.read_text(), 120)
        wrong.touch()

    setting = threading.Thread(target=set_wrong)
    setting.start()
    with pytest.raises(BuilderUnwell, match="ahead of ours"):
        lab.builder().build(order, lab.progress.append)
    setting.join()
    assert not (lab.root / "cache" / "builder" / "out").exists(), "make would take what is there for new"
    wrong.unlink()
    assert lab.builder().build(order, lab.progress.append).release == "6.1.0-toy"
