"""Which functions a change touches, read from the sources."""

from __future__ import annotations

from pathlib import Path

import git

from bisector.adapters.git.changed_functions import touched_functions
from bisector.linux.functions import changed_lines, functions_at

SOURCE = """\
#include <linux/sched.h>

static int count;

/* one comment
 */
static __always_inline void account(struct cfs_rq *cfs_rq,
				unsigned long delta)
{
	if (!cfs_rq->enabled)
		return;
	count += delta;
}

SYSCALL_DEFINE2(clock_gettime, const clockid_t, which_clock,
		struct timespec __user *, tp)
{
	return 0;
}

struct ops table = {
	.run = account,
};

static const int numbers[] =
{
	1, 2,
};

#ifdef CONFIG_SMP
void __init
late(void)
{
}
#endif

int last(void) { return 1; }
"""


def line(text: str) -> int:
    return next(i for i, x in enumerate(SOURCE.splitlines(), start=1) if text in x)


def at(text: str) -> set[str]:
    return functions_at(SOURCE, [line(text)])


def test_body_head_and_second_line_of_the_head() -> None:
    assert at("count += delta") == {"account"}
    assert at("unsigned long delta") == {"account"}
    assert at("static __always_inline void account") == {"account"}


def test_what_is_no_function() -> None:
    assert at("static int count") == set()
    assert at("#include") == set()
    assert at("1, 2,") == set()
    assert at(".run = account") == set()
    assert functions_at(SOURCE, [0, 999]) == set()


def test_a_system_call_has_the_names_of_its_symbols() -> None:
    assert {"__x64_sys_clock_gettime", "__do_sys_clock_gettime"} <= at("return 0;")


def test_a_head_whose_type_stands_alone() -> None:
    assert at("late(void)") == {"late"}
    assert at("void __init") == {"late"}


def test_lines_of_a_diff_without_context() -> None:
    old, new = changed_lines("@@ -3,2 +3 @@ x\n-a\n-b\n+c\n@@ -9,0 +9,2 @@\n+d\n+e\n@@ -20 +0,0 @@\n-f\n")
    assert old == {3, 4, 20}
    assert new == {3, 9, 10}


def test_a_commit_that_changes_adds_and_removes(tmp_path: Path) -> None:
    repo = git.Repo.init(tmp_path)
    with repo.config_writer() as config:
        config.set_value("user", "name", "n")
        config.set_value("user", "email", "e")
    (tmp_path / "a.c").write_text(SOURCE)
    (tmp_path / "gone.c").write_text("void gone(void)\n{\n}\n")
    (tmp_path / "notes.txt").write_text("x")
    repo.git.add("-A")
    repo.git.commit("-m", "one")
    first = repo.head.commit.hexsha
    assert {"account", "gone", "late"} <= touched_functions(tmp_path, first)  # a root commit adds all
    (tmp_path / "a.c").write_text(SOURCE.replace("count += delta", "count -= delta"))
    (tmp_path / "gone.c").unlink()
    (tmp_path / "näme.c").write_text("\nvoid fresh(void)\n{\n\tx();\n}\n")
    (tmp_path / "notes.txt").write_text("void no(void)\n{\n}\n")
    repo.git.add("-A")
    repo.git.commit("-m", "two")
    assert touched_functions(tmp_path, repo.head.commit.hexsha) == {"account", "gone", "fresh"}
