"""What a failed build means: a statement about the commit, or about the machine that built it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from bisector.adapters.build.failure import FailedBuild
from bisector.errors import (
    BuilderUnwell,
    BuildFailed,
    BuildUnexplained,
    InfrastructureError,
    PerfbisectError,
    SourceFailed,
)
from bisector.schemas.kernel.build_plan import BuildPlan, load_plan
from bisector.schemas.kernel.release import Release
from tests.support.toy_kernel import write_recipes

SYNTAX = "kernel/work.c:1:26: error: 'y' undeclared\n    1 | return y;\n"
ENOUGH_KB, TOO_LITTLE_KB = str(64 * 1024), str(64 * 1024 - 1)


@pytest.fixture
def built(tmp_path: Path) -> BuildPlan:
    kernels = write_recipes(tmp_path / "kernels", required="CONFIG_TOY=y\nCONFIG_NEW=y\n")

    return load_plan("toy", Release.parse("v6.1"), "here", kernels)


def fail(built: BuildPlan, facts: Mapping[str, str], log: str = "", defines: str = "") -> PerfbisectError:
    failed = FailedBuild("abc123", "far", built, facts, log, Path("/kept/build.log"))
    return failed.error(lambda option: option in defines.split())


@pytest.mark.parametrize("facts", [{}, {"free_kb": ""}, {"free_kb": ENOUGH_KB}, {"status": "failed"}])
def test_an_error_of_the_compiler_is_the_commits_own_where_there_was_room(
    built: BuildPlan, facts: Mapping[str, str]
) -> None:
    error = fail(built, facts, SYNTAX)
    assert type(error) is BuildFailed
    assert error.message == f"abc123 does not build: it does not compile: {SYNTAX.splitlines()[0]}"
    assert error.details.splitlines() == [*SYNTAX.splitlines(), "log: /kept/build.log"]


def test_the_message_names_a_file_as_it_is_in_the_tree_wherever_the_builder_has_it(built: BuildPlan) -> None:
    error = fail(built, {}, "/home/ann/builder/source/mm/slab.c:7:2: error: x\n")
    assert error.message == "abc123 does not build: it does not compile: mm/slab.c:7:2: error: x"


@pytest.mark.parametrize("log", [SYNTAX, "", "make: *** [Makefile:1: x.o] Error 1\n"])
def test_without_room_no_error_of_the_compiler_counts(built: BuildPlan, log: str) -> None:
    error = fail(built, {"free_kb": TOO_LITTLE_KB}, log)
    assert type(error) is BuilderUnwell
    assert error.message == "building abc123 on 'far' failed: the disk is full"
    assert error.cure == "free some space there"


def test_a_build_that_was_ended_at_its_limit_is_nobodys_fault(built: BuildPlan) -> None:
    log = f"{SYNTAX}the build was ended: it took longer than 14400 s\n"
    error = fail(built, {"status": "timed-out", "free_kb": ENOUGH_KB}, log)
    assert type(error) is InfrastructureError
    assert error.message == "building abc123 on 'far' took too long, and was ended there"
    assert error.details == "the build was ended: it took longer than 14400 s\nlog: /kept/build.log"
    assert "skip" in error.cure


def test_a_sign_of_the_machine_is_the_machines_with_any_room(built: BuildPlan) -> None:
    killed = f"{SYNTAX}gcc: fatal error: Killed signal terminated program cc1\n"
    error = fail(built, {"free_kb": ENOUGH_KB}, killed)
    assert type(error) is InfrastructureError
    assert "on 'far' failed: a compiler was killed" in error.message
    assert "doctor" in error.cure
    assert error.details == "gcc: fatal error: Killed signal terminated program cc1\nlog: /kept/build.log"
    full = fail(built, {"free_kb": ENOUGH_KB}, f"{SYNTAX}as: x.o: No space left on device\n")
    assert (full.message.rpartition(": ")[2], full.cure) == ("the disk is full", "free some space there")


def test_a_sign_of_the_machine_tells_more_than_little_room(built: BuildPlan) -> None:
    """Who is sent to make room on a builder that lacks memory mends nothing."""
    killed = f"{SYNTAX}gcc: fatal error: Killed signal terminated program cc1\n"
    error = fail(built, {"free_kb": TOO_LITTLE_KB}, killed)
    assert type(error) is InfrastructureError
    assert "a compiler was killed" in error.message


def test_a_build_that_says_nothing_is_the_commits_in_doubt(built: BuildPlan) -> None:
    error = fail(built, {})
    assert type(error) is BuildUnexplained
    assert error.message == "abc123 does not build: its build fails"


@pytest.mark.parametrize("tool", ["flex: not found", "libelf.h: No such file"])
def test_what_is_missing_on_the_builder_is_not_the_commits(built: BuildPlan, tool: str) -> None:
    line = f"fatal error: {tool}" if ".h" in tool else f"/bin/sh: 1: {tool}"
    assert type(fail(built, {"free_kb": ENOUGH_KB}, f"{line}\n")) is InfrastructureError


def test_a_long_line_is_cut(built: BuildPlan) -> None:
    line = f"kernel/work.c:1: error: {'x' * 500}"
    error = fail(built, {}, line)
    assert error.message == f"abc123 does not build: it does not compile: {line[:160]}"
    assert line in error.details


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        ("not-linux", SourceFailed, "abc123 holds no Linux kernel"),
        ("stale", InfrastructureError, "held another kernel than the one just linked"),
        ("misconfigured", InfrastructureError, "is not configured as it was asked for"),
    ],
)
def test_what_the_builder_s_script_found_wins_over_the_log(
    built: BuildPlan, status: str, kind: type[PerfbisectError], words: str
) -> None:
    error = fail(built, {"status": status}, SYNTAX)
    assert type(error) is kind
    assert words in error.message
    assert ("log: " in error.details) is (kind is InfrastructureError)


def test_a_required_option_that_is_not_granted_is_the_commits(built: BuildPlan) -> None:
    lines = ("CONFIG_TOY=y|CONFIG_OLD_TOY=y", "CONFIG_NEW=y")
    log = "".join(f"required option not granted: {line}\n" for line in lines)
    error = fail(
        built,
        {"status": "refused"},
        f"a script says: required option not granted: CONFIG_X=y\n{log}",
        defines="OLD_TOY NEW",
    )
    assert type(error) is BuildFailed
    assert error.message == (
        "abc123 does not grant what the recipe 'toy' requires: CONFIG_TOY=y, CONFIG_NEW=y"
    )
    assert error.details == "log: /kept/build.log"
    assert error.cure.startswith("make it 'wanted' in ")
    unknown = fail(built, {"status": "refused"}, log, defines="TOY")
    assert unknown.details.startswith("no Kconfig file of this tree (v6.1) defines NEW\n")
    assert unknown.cure.startswith("mend the name in the fragments of ")
