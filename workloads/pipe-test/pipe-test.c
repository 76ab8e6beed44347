/*
 * pipe-test: two processes pass one byte back and forth through two pipes.
 *
 *     pipe-test ROUND_TRIPS
 *
 * Every round trip is two writes, two reads that block, two wake-ups and two context switches, so the time
 * follows the length of the scheduler's and the pipe code's paths. Prints, in seconds:
 *
 *     real: elapsed time (CLOCK_MONOTONIC) from the first write to the last read
 *     user: user time of both processes, by the kernel's accounting
 *     sys:  system time of both processes, by the kernel's accounting
 *
 * The other process is forked, and has answered once, before the clock starts: fork, exec and the first page
 * faults are no part of the result.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
	fprintf(stderr, "pipe-test: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* A signal may interrupt a system call; nothing else may go wrong. */
static void put(int fd)
{
	char byte = 'p';

	while (write(fd, &byte, 1) != 1)
		if (errno != EINTR)
			fail("write");
}

/* Returns 0 at the end of the stream. */
static int get(int fd)
{
	char byte;
	ssize_t got;

	while ((got = read(fd, &byte, 1)) < 0)
		if (errno != EINTR)
			fail("read");
	return got == 1;
}

static double seconds_of(struct timeval value)
{
	return value.tv_sec + value.tv_usec * 1e-6;
}

static double now(void)
{
	struct timespec value;

	if (clock_gettime(CLOCK_MONOTONIC, &value) != 0)
		fail("clock_gettime");
	return value.tv_sec + value.tv_nsec * 1e-9;
}

static void used(int who, double *user, double *sys)
{
	struct rusage usage;

	if (getrusage(who, &usage) != 0)
		fail("getrusage");
	*user = seconds_of(usage.ru_utime);
	*sys = seconds_of(usage.ru_stime);
}

int main(int argc, char **argv)
{
	int ping[2], pong[2], status;
	double start, real, user, sys, child_user, child_sys;
	char *end = NULL;
	long trips, trip;
	pid_t child;

	trips = argc == 2 ? strtol(argv[1], &end, 10) : 0;
	if (trips < 1 || *end != '\0') {
		fprintf(stderr, "usage: pipe-test ROUND_TRIPS\n");
		return 2;
	}
	if (pipe(ping) != 0 || pipe(pong) != 0)
		fail("pipe");
	child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0) {
		/* Only the parent may hold the writing end of ping, or this loop would never see its end. */
		close(ping[1]);
		close(pong[0]);
		while (get(ping[0]))
			put(pong[1]);
		_exit(0);
	}
	close(ping[0]);
	close(pong[1]);

	put(ping[1]);
	if (!get(pong[0]))
		fail("the other process ended early");

	start = now();
	for (trip = 0; trip < trips; trip++) {
		put(ping[1]);
		if (!get(pong[0]))
			fail("the other process ended early");
	}
	real = now() - start;

	close(ping[1]);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			fail("waitpid");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fprintf(stderr, "pipe-test: the other process failed (status 0x%x)\n", status);
		return 1;
	}
	used(RUSAGE_SELF, &user, &sys);
	used(RUSAGE_CHILDREN, &child_user, &child_sys);

	printf("real: %.9f s\n", real);
	printf("user: %.6f s\n", user + child_user);
	printf("sys: %.6f s\n", sys + child_sys);
	return fflush(stdout) == 0 ? 0 : 1;
}
