"""Which commits cannot change a kernel: rules for paths, whole ranges, and what the state makes of it."""

from __future__ import annotations

import pytest

from bisector.linux.relevance import Change, FilesRead, prune, why
from bisector.model.commit_graph import CommitGraph
from bisector.model.goal import Goal, Metric, Threshold
from bisector.model.records import Built, Irrelevant, Record
from bisector.model.state import IRRELEVANT_WEIGHT, extend, fold, reweight_irrelevant
from bisector.schemas import serialization

READ = FilesRead.of(
    [
        frozenset({"kernel/pid.c", "include/linux/pid.h", "arch/x86/entry/entry_64.S"}),
        frozenset({"kernel/rt.c", "./arch/x86/include/generated/asm/timex.h"}),
    ]
)
GOAL = Goal(Metric("real", "s", "lower", Threshold(0.05)))


@pytest.mark.parametrize(
    ("path", "added", "reason"),
    [
        ("kernel/pid.c", False, "compiled"),
        ("kernel/rt.c", False, "compiled"),  # by the build at the other end
        ("include/linux/pid.h", False, "compiled"),
        ("drivers/net/e100.c", False, None),
        ("drivers/net/new.c", True, None),
        ("drivers/net/e100.h", False, None),
        ("include/linux/new.h", True, None),
        ("arch/x86/include/asm/pid.h", True, "header that may shadow another"),
        ("arch/x86/include/asm/timex.h", True, "header that may shadow another"),  # the build made one
        ("drivers/net/Kconfig", False, "makefile or Kconfig"),
        ("drivers/net/Makefile", False, "makefile or Kconfig"),
        ("arch/x86/Kconfig.cpu", False, "makefile or Kconfig"),
        ("arch/x86/Makefile_64", False, "makefile or Kconfig"),
        ("arch/arm/Kconfig", False, None),
        ("arch/Kconfig", False, "makefile or Kconfig"),
        ("arch/i386/kernel/head.S", False, None),
        ("arch/i386/Makefile", False, "makefile or Kconfig"),  # x86_64 borrowed from there
        ("include/asm-sparc/pid.h", True, None),
        ("include/asm-generic/pid.h", True, "header that may shadow another"),
        ("Documentation/pid.txt", False, None),
        ("Documentation/Kconfig", False, "makefile or Kconfig"),
        ("MAINTAINERS", False, None),
        ("drivers/net/README", False, None),
        ("scripts/mod/modpost.c", False, "script or tool"),
        ("tools/objtool/check.c", False, "script or tool"),
        ("tools/perf/perf.c", False, None),
        ("arch/x86/kernel/vmlinux.lds.S", False, "linker script"),
        ("include/asm-generic/vmlinux.lds.h", False, "linker script"),
        ("arch/x86/entry/syscalls/syscall_64.tbl", False, "other file"),
        ("localversion-rt", True, "other file"),
    ],
)  # fmt: skip
def test_paths(path: str, added: bool, reason: str | None) -> None:
    assert why(Change(path, added), READ, "x86_64") == reason


def _line(n: int) -> CommitGraph:
    return CommitGraph(
        shas=tuple(f"c{i}" for i in range(n)),
        parents=((), *((i,) for i in range(n - 1))),
        candidate=(False, *(True for _ in range(n - 1))),
        good=0,
        bad=n - 1,
        weights={1: 3.0},
    )


CHANGES = {
    "c1": (Change("kernel/pid.c", added=False),),
    "c2": (Change("drivers/a.c", added=True), Change("MAINTAINERS", added=False)),
    "c3": (Change("drivers/a.c", added=False), Change("drivers/Makefile", added=False)),
    "c5": (),
}
BUILDS = [frozenset({"kernel/pid.c"}), frozenset({"kernel/pid.c", "kernel/rt.c"})]


def test_a_range() -> None:
    found = prune(_line(6), CHANGES, BUILDS, "x86_64")
    assert found.commits == (2, 5)  # c4 changes something nobody knows: a merge
    assert found.kept == {"compiled": 1, "makefile or Kconfig": 1, "merge": 1}
    assert found.builds == 2


def test_weights_follow_the_latest_word() -> None:
    graph = _line(6)
    once = reweight_irrelevant(graph, Irrelevant((2, 5), {}, 2))
    assert once.weights == {1: 3.0, 2: IRRELEVANT_WEIGHT, 5: IRRELEVANT_WEIGHT}
    assert reweight_irrelevant(once, Irrelevant((2, 5), {}, 3)) is once
    assert reweight_irrelevant(once, Irrelevant((5,), {}, 3)).weights == {1: 3.0, 5: IRRELEVANT_WEIGHT}


def test_the_state_has_it_however_it_was_reached() -> None:
    graph = _line(6)
    records: list[Record] = [
        Built(0, True, 1.0, "a"),
        Irrelevant((2, 5), {"merge": 1}, 2),
        Built(3, True, 1.0, "b"),
        Irrelevant((2,), {"merge": 1}, 3),
    ]
    whole = fold(graph, GOAL, records)
    assert whole.graph.weights == {1: 3.0, 2: IRRELEVANT_WEIGHT}
    assert fold(whole.graph, GOAL, records).graph == whole.graph
    step = fold(graph, GOAL, records[:2])
    assert step.graph.weights == {1: 3.0, 2: IRRELEVANT_WEIGHT, 5: IRRELEVANT_WEIGHT}
    step = extend(step, records[2:3])
    same = extend(step, ())
    assert same.graph is step.graph  # what a planner remembers belongs to this object
    assert extend(step, records[3:]) == whole
    assert serialization.record_from(serialization.to_json(records[1])) == records[1]
