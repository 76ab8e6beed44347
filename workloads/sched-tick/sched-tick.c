/*
 * sched-tick: many runnable threads in several task groups; what the scheduler's tick takes is missing from them.
 *
 *     sched-tick [groups=N] [threads=N] [depth=N] [spins=N] [milliseconds=N] [limit=N] [by=WHAT] [cgroup=v1|v2]
 *
 *     groups        of tasks, each a process                        threads   of each group
 *     depth         groups nested in one another, with by=cgroup    spins     rounds of a transaction's loop
 *     milliseconds  of each of two phases                           limit     of a response, in milliseconds
 *     by            autogroup: a session for each group; cgroup: a control group; both: every other one
 *
 * A transaction is a loop of fixed length. In the first phase every thread carries out one after another. In the
 * second, transactions fall due at a rate that rises evenly from nothing to 120% of what all CPUs could do if there
 * were no kernel; a thread that is late goes on with the next at once. What it prints:
 *
 *     max_ops: transactions a second of the first phase
 *     critical_ops: transactions a second of the second phase that ended within the limit after they fell due
 *     late: how many of the second phase did not
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cgroup.h"

enum { GROUPS_MAX = 256, THREADS_MAX = 256, CALIBRATIONS = 5 };

static long groups = 8, threads = 4, depth = 2, spins = 20000, milliseconds = 2000, limit = 20;
static int by_autogroup = 1, by_cgroup = 1, version = 2;

struct counts {
	long done, within, late;
};
static struct counts *counts; /* of each thread, shared with its process */
static double start, interval; /* of the phases, in seconds; between two transactions of a thread at 100% */

static void fail(const char *what)
{
	fprintf(stderr, "sched-tick: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec value;

	clock_gettime(CLOCK_MONOTONIC, &value);
	return value.tv_sec + value.tv_nsec * 1e-9;
}

static void sleep_until(double when)
{
	struct timespec value = { (time_t)when, (long)((when - (time_t)when) * 1e9) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &value, NULL) == EINTR)
		;
}

static void transaction(void)
{
	volatile unsigned long value = 1;
	long i;

	for (i = 0; i < spins; i++)
		value = value * 6364136223846793005UL + 1442695040888963407UL;
}

/* Seconds of a transaction that nothing disturbs: the least of a few. */
static double calibrate(void)
{
	double least = 0;
	int i;

	for (i = 0; i < CALIBRATIONS; i++) {
		double begin = now(), took;

		transaction();
		took = now() - begin;
		if (i == 0 || took < least)
			least = took;
	}
	return least;
}

static void *work(void *argument)
{
	long number = (long)argument, due;
	struct counts *mine = &counts[number];
	double seconds = milliseconds / 1000.0, begin = start, end = begin + seconds;
	/* The rate at the end of the second phase is 1.2 / interval: after t seconds 0.6 t^2 / (seconds interval)
	   transactions have fallen due. Threads begin at different parts of a transaction. */
	double scale = seconds * interval / 0.6, part = (double)(number * 7 % (groups * threads)) / (groups * threads);

	sleep_until(begin);
	for (;;) {
		transaction();
		if (now() > end)
			break;
		mine->done++;
	}
	begin = end + 0.1; /* the last transactions of the first phase end before */
	end = begin + seconds;
	for (due = 0;; due++) {
		double when = begin + sqrt((due + part) * scale), ended;

		if (when > end)
			break;
		if (now() < when)
			sleep_until(when);
		else if (now() > end + limit / 1000.0) {
			mine->late++; /* too late whatever happens now */
			continue;
		}
		transaction();
		ended = now();
		if (ended - when <= limit / 1000.0)
			mine->within++;
		else
			mine->late++;
	}
	return NULL;
}

static void group_of_threads(long group)
{
	pthread_t ids[THREADS_MAX];
	long i;

	for (i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, work, (void *)(group * threads + i)) != 0)
			fail("pthread_create");
	for (i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
}

/* Nested control groups of a group: "perfbisect-tick-3", "perfbisect-tick-3/1", ... Returns the depth that is there. */
static int make_nest(const struct cgroups *hierarchy, long group, char *path)
{
	char name[250];
	int length = snprintf(name, sizeof(name), "perfbisect-tick-%ld", group), level;

	for (level = 1; level <= depth; level++) {
		if (level > 1)
			length += snprintf(name + length, sizeof(name) - length, "/%d", level);
		if (cgroup_make(hierarchy, name, path) != 0)
			return level - 1;
	}
	return depth;
}

static void remove_nest(const struct cgroups *hierarchy, long group)
{
	char path[512], *slash;
	int level;

	snprintf(path, sizeof(path), "%s/perfbisect-tick-%ld", hierarchy->root, group);
	for (level = 2; level <= depth; level++)
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "/%d", level);
	for (level = depth; level >= 1; level--) {
		cgroup_remove(path);
		slash = strrchr(path, '/');
		*slash = '\0';
	}
}

static int in_cgroup(long group)
{
	return by_cgroup && (!by_autogroup || group % 2 == 1);
}

static int measure(const struct cgroups *hierarchy)
{
	long total = groups * threads, i;
	struct counts all = { 0, 0, 0 };
	double seconds = milliseconds / 1000.0;
	pid_t children[GROUPS_MAX];
	char path[512];
	int go[2], status, failed = 0;
	cpu_set_t cpus;

	counts = mmap(NULL, total * sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counts == MAP_FAILED || pipe(go) != 0)
		fail("mmap");
	if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
		fail("sched_getaffinity");
	interval = calibrate() * total / CPU_COUNT(&cpus);
	for (i = 0; i < groups; i++) {
		children[i] = fork();
		if (children[i] < 0)
			fail("fork");
		if (children[i] == 0) {
			close(go[1]);
			if (!in_cgroup(i) && setsid() < 0) /* gives it an autogroup of its own */
				fail("setsid");
			if (read(go[0], &start, sizeof(start)) != sizeof(start))
				_exit(1);
			group_of_threads(i);
			_exit(0);
		}
		if (in_cgroup(i) &&
		    (make_nest(hierarchy, i, path) != depth || cgroup_join(path, children[i]) != 0))
			failed = 1;
	}
	start = now() + 0.1;
	for (i = 0; i < groups && !failed; i++)
		if (write(go[1], &start, sizeof(start)) != sizeof(start))
			fail("write");
	close(go[1]);
	close(go[0]);
	for (i = 0; i < groups; i++)
		if (waitpid(children[i], &status, 0) != children[i] || status != 0)
			failed = 1;
	for (i = 0; i < groups; i++)
		if (in_cgroup(i))
			remove_nest(hierarchy, i);
	if (failed)
		return 1;
	for (i = 0; i < total; i++) {
		all.done += counts[i].done;
		all.within += counts[i].within;
		all.late += counts[i].late;
	}
	printf("max_ops: %.3f 1/s\n", all.done / seconds);
	printf("critical_ops: %.3f 1/s\n", all.within / seconds);
	printf("late: %ld\n", all.late);
	return fflush(stdout) == 0 ? 0 : 1;
}

static int usage(void)
{
	fprintf(stderr, "usage: sched-tick [groups=N] [threads=N] [depth=N] [spins=N] [milliseconds=N] [limit=N]\n"
			"                  [by=autogroup|cgroup|both] [cgroup=v1|v2]\n");
	return 2;
}

static int set(const char *argument)
{
	static const struct {
		const char *name;
		long *value, most;
	} numbers[] = { { "groups=", &groups, GROUPS_MAX },	    { "threads=", &threads, THREADS_MAX },
			{ "depth=", &depth, 16 },		    { "spins=", &spins, 1000000000 },
			{ "milliseconds=", &milliseconds, 3600000 }, { "limit=", &limit, 3600000 } };
	size_t i, length;
	char *end;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		length = strlen(numbers[i].name);
		if (strncmp(argument, numbers[i].name, length) != 0)
			continue;
		*numbers[i].value = strtol(argument + length, &end, 10);
		return *end != '\0' || *numbers[i].value < 1 || *numbers[i].value > numbers[i].most;
	}
	if (strncmp(argument, "by=", 3) == 0) {
		by_autogroup = strcmp(argument + 3, "cgroup") != 0;
		by_cgroup = strcmp(argument + 3, "autogroup") != 0;
		return by_autogroup && by_cgroup && strcmp(argument + 3, "both") != 0;
	}
	if (strcmp(argument, "cgroup=v1") != 0 && strcmp(argument, "cgroup=v2") != 0)
		return 1;
	version = argument[8] - '0';
	return 0;
}

int main(int argc, char **argv)
{
	struct cgroups hierarchy;
	int i, code;

	for (i = 1; i < argc; i++)
		if (set(argv[i]))
			return usage();
	if (by_cgroup && cgroups_open(&hierarchy, version) != 0)
		return 1;
	code = measure(&hierarchy);
	if (by_cgroup)
		cgroups_close(&hierarchy);
	return code;
}
