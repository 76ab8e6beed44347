/*
 * cfs-bandwidth: a pipe ping-pong within a control group whose CPU time is limited, or not.
 *
 *     cfs-bandwidth W1|W2|W3 unconstrained|QUOTA/PERIOD [trips=N] [shell=PATH|none] [cgroup=v1|v2]
 *     cfs-bandwidth pipe N                  the ping-pong alone, N round trips; prints nothing
 *
 *     W1   a shell starts five programs one after another, each with a fifth of the round trips
 *     W2   a shell forks, and the child becomes the program:       PROGRAM;true
 *     W3   a shell that may become the program without a fork:     PROGRAM;
 *
 * QUOTA and PERIOD are microseconds. With shell=none this program forks and executes in the shell's place, so that
 * nothing but a kernel is needed. The whole runs in one group of its own. What it prints:
 *
 *     real: seconds from the shell's exec to its end     user, sys: CPU time of all processes, in seconds
 *     instructions, cycles, branches: of the same        (performance counters; absent where there are none)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cgroup.h"

enum { COUNTERS = 3, PROGRAMS = 5 };

/* linux/perf_event.h, version 0 of its structure, as of Linux 2.6.32: C libraries do not bring it. */
struct counter {
	unsigned int type, size;
	unsigned long long config, sample_period, sample_type, read_format, flags;
	unsigned int wakeup_events, breakpoint_type;
	unsigned long long breakpoint_address;
};
enum { DISABLED = 1 << 0, INHERIT = 1 << 1, ENABLE_ON_EXEC = 1 << 12, TIMES = 3 };

static const struct {
	const char *name;
	unsigned long long config; /* PERF_COUNT_HW_... */
} counters[COUNTERS] = { { "instructions", 1 }, { "cycles", 0 }, { "branches", 4 } };

static void fail(const char *what)
{
	fprintf(stderr, "cfs-bandwidth: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void pass(int from, int to, long trips, int first)
{
	char byte = 'p';

	if (first && write(to, &byte, 1) != 1)
		fail("write");
	while (trips-- > 0) {
		if (read(from, &byte, 1) != 1)
			fail("read");
		if ((trips > 0 || !first) && write(to, &byte, 1) != 1)
			fail("write");
	}
}

static int ping_pong(long trips)
{
	int ping[2], pong[2], status;
	pid_t child;

	if (pipe(ping) != 0 || pipe(pong) != 0)
		fail("pipe");
	child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0) {
		pass(ping[0], pong[1], trips, 0);
		_exit(0);
	}
	pass(pong[0], ping[1], trips, 1);
	if (waitpid(child, &status, 0) != child || status != 0)
		fail("the other process");
	return 0;
}

static void become(const char *program, long trips)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", trips);
	execl(program, program, "pipe", text, (char *)NULL);
	fail(program);
}

/* What the shell would do, without one. */
static void instead_of_shell(const char *program, int kind, long trips)
{
	int i, status, programs = kind == 1 ? PROGRAMS : 1;

	if (kind == 3)
		become(program, trips);
	for (i = 0; i < programs; i++) {
		pid_t child = fork();

		if (child == 0)
			become(program, trips / programs);
		if (child < 0 || waitpid(child, &status, 0) != child)
			fail("fork");
		if (status != 0)
			_exit(1);
	}
	_exit(0);
}

static void start(const char *program, const char *shell, int kind, long trips)
{
	char script[512];

	if (strcmp(shell, "none") == 0) {
		snprintf(script, sizeof(script), "%ld", trips);
		/* By an exec like a shell's: counters are switched on by it. */
		execl(program, program, "inside", kind == 1 ? "1" : kind == 2 ? "2" : "3", script, (char *)NULL);
	} else {
		if (kind == 1)
			snprintf(script, sizeof(script), "for ((i=0;i<%d;i++)); do %s pipe %ld; done", PROGRAMS, program,
				 trips / PROGRAMS);
		else
			snprintf(script, sizeof(script), "%s pipe %ld;%s", program, trips, kind == 2 ? "true" : "");
		execl(shell, shell, "-c", script, (char *)NULL);
	}
	fail(shell);
}

static int open_counter(int number, pid_t pid)
{
	struct counter wanted;

	memset(&wanted, 0, sizeof(wanted));
	wanted.size = sizeof(wanted);
	wanted.config = counters[number].config;
	wanted.read_format = TIMES;
	wanted.flags = DISABLED | INHERIT | ENABLE_ON_EXEC;
	return syscall(SYS_perf_event_open, &wanted, pid, -1, -1, 0UL);
}

static void print_counter(int number, int fd)
{
	unsigned long long value[3]; /* count, time enabled, time running */

	if (fd < 0) {
		fprintf(stderr, "%s: not supported here\n", counters[number].name);
		return;
	}
	if (read(fd, value, sizeof(value)) != sizeof(value) || value[2] == 0)
		fprintf(stderr, "%s: not counted\n", counters[number].name);
	else
		printf("%s: %.0f\n", counters[number].name, (double)value[0] * value[1] / value[2]);
}

static double seconds(struct timeval value)
{
	return value.tv_sec + value.tv_usec * 1e-6;
}

/* Returns the exit code. */
static int measure(const char *program, const char *shell, int kind, long trips, const char *group)
{
	int go[2], opened[COUNTERS], i, status;
	struct timespec begin, end;
	struct rusage usage;
	pid_t child;
	char byte;

	if (pipe(go) != 0)
		fail("pipe");
	child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		close(go[0]);
		start(program, shell, kind, trips);
	}
	close(go[0]);
	if (cgroup_join(group, child) != 0) {
		close(go[1]);
		waitpid(child, NULL, 0);
		return 1;
	}
	for (i = 0; i < COUNTERS; i++)
		opened[i] = open_counter(i, child);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (write(go[1], "g", 1) != 1)
		fail("write");
	while (wait4(child, &status, 0, &usage) != child)
		if (errno != EINTR)
			fail("wait4");
	clock_gettime(CLOCK_MONOTONIC, &end);
	if (status != 0) {
		fprintf(stderr, "cfs-bandwidth: what ran in the group failed (status 0x%x)\n", status);
		return 1;
	}
	printf("real: %.9f s\n", (end.tv_sec - begin.tv_sec) + (end.tv_nsec - begin.tv_nsec) * 1e-9);
	printf("user: %.6f s\n", seconds(usage.ru_utime));
	printf("sys: %.6f s\n", seconds(usage.ru_stime));
	for (i = 0; i < COUNTERS; i++)
		print_counter(i, opened[i]);
	return fflush(stdout) == 0 ? 0 : 1;
}

static int usage(void)
{
	fprintf(stderr, "usage: cfs-bandwidth W1|W2|W3 unconstrained|QUOTA/PERIOD [trips=N] [shell=PATH|none] "
			"[cgroup=v1|v2]\n"
			"       cfs-bandwidth pipe N\n");
	return 2;
}

int main(int argc, char **argv)
{
	const char *shell = "/bin/bash", *limit;
	char group[512], quota[64], period[64];
	int i, version = 2, kind, code = 1;
	struct cgroups groups;
	long trips = 100000;

	if (argc == 3 && strcmp(argv[1], "pipe") == 0)
		return ping_pong(atol(argv[2]));
	if (argc == 4 && strcmp(argv[1], "inside") == 0)
		instead_of_shell(argv[0], atoi(argv[2]), atol(argv[3]));
	if (argc < 3 || strlen(argv[1]) != 2 || argv[1][0] != 'W' || argv[1][1] < '1' || argv[1][1] > '3')
		return usage();
	kind = argv[1][1] - '0';
	limit = argv[2];
	for (i = 3; i < argc; i++) {
		if (strncmp(argv[i], "trips=", 6) == 0)
			trips = atol(argv[i] + 6);
		else if (strncmp(argv[i], "shell=", 6) == 0)
			shell = argv[i] + 6;
		else if (strcmp(argv[i], "cgroup=v1") == 0 || strcmp(argv[i], "cgroup=v2") == 0)
			version = argv[i][8] - '0';
		else
			return usage();
	}
	if (trips < PROGRAMS || (strcmp(limit, "unconstrained") != 0 &&
				 sscanf(limit, "%63[0-9]/%63[0-9]", quota, period) != 2))
		return usage();
	if (strcmp(shell, "none") != 0 && access(shell, X_OK) != 0)
		fail(shell);
	if (cgroups_open(&groups, version) != 0)
		return 1;
	if (cgroup_make(&groups, "perfbisect-bandwidth", group) == 0) {
		if (strcmp(limit, "unconstrained") == 0 || cgroup_limit(&groups, group, quota, period) == 0)
			code = measure(argv[0], shell, kind, trips, group);
		cgroup_remove(group);
	}
	cgroups_close(&groups);
	return code;
}
