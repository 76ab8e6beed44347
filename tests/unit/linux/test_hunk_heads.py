"""What a stream of diffs says of each commit: functions by hunks' heads, and files that may change any."""

from __future__ import annotations

from bisector.linux.hunk_heads import COMMIT, read

STREAM = f"""\
{COMMIT}aaaa

diff --git a/kernel/sched/core.c b/kernel/sched/core.c
--- a/kernel/sched/core.c
+++ b/kernel/sched/core.c
@@ -10 +10,2 @@ static void ttwu_queue(struct task_struct *p, int cpu)
-	raw_spin_lock(&rq->lock);
+	rq_lock(rq, &rf);
+	if (p->on_cpu)
@@ -40,0 +42,5 @@ void schedule(void)
+static inline int brand_new(struct rq *rq)
+{{
+	return call_it(rq);
+}}
@@ -90 +95 @@ SYSCALL_DEFINE2(nice, int, increment)
-	int x;
+	long x;
@@ -99 +104 @@ static const struct file_operations ops = {{
-	.read = a(b),
+	.read = b(c),
{COMMIT}bbbb

diff --git a/arch/x86/Kconfig b/arch/x86/Kconfig
--- a/arch/x86/Kconfig
+++ b/arch/x86/Kconfig
@@ -30,0 +31 @@ config X86
+	select ARCH_SUPPORTS_RT
{COMMIT}cccc

diff --git a/include/linux/spinlock.h b/include/linux/spinlock.h
--- a/include/linux/spinlock.h
+++ b/include/linux/spinlock.h
@@ -3 +3 @@ static inline void spin_lock(spinlock_t *lock)
-	a();
+	b();
diff --git a/Documentation/locking.rst b/Documentation/locking.rst
--- a/Documentation/locking.rst
+++ b/Documentation/locking.rst
@@ -3 +3 @@ The function schedule() sleeps
-a (b)
+c (d)
{COMMIT}dddd
"""


def test_functions_and_files_are_told_apart_by_commit() -> None:
    a, b, c, d = read(STREAM.splitlines())
    assert (a.sha, a.anything) == ("aaaa", frozenset())
    assert a.functions == {
        *("ttwu_queue", "schedule", "brand_new"),
        *("__x64_sys_nice", "__do_sys_nice", "__se_sys_nice", "sys_nice"),
    }
    assert not b.functions
    assert b.anything == {"arch/x86/Kconfig"}
    assert c.functions == {"spin_lock"}
    assert c.anything == {"include/linux/spinlock.h"}
    assert (d.sha, d.functions, d.anything) == ("dddd", frozenset(), frozenset())
