/*
 * poundtime: threads of one process ask for the process's CPU time, all at once, again and again.
 *
 *     poundtime THREADS CALLS
 *
 * CALLS calls are split evenly over THREADS threads, first of times(), then of
 * clock_gettime(CLOCK_PROCESS_CPUTIME_ID). Both add up what all threads have used, so the cost of a call follows the
 * number of threads and how the kernel locks and sums. Prints, in seconds from the moment that all threads are let
 * loose to the end of the last:
 *
 *     pound_times: ...
 *     pound_clock_gettime: ...
 *
 * System calls are made directly: a library or the vDSO must not answer instead of the kernel.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 65536, STACK = 65536 };

struct work {
	long calls;
	int which; /* 0: times, 1: clock_gettime */
};

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static long waiting;
static int is_open;

static void fail(const char *what, int error)
{
	fprintf(stderr, "poundtime: %s: %s\n", what, strerror(error));
	exit(1);
}

static void *pound(void *argument)
{
	struct work *work = argument;
	struct timespec spent;
	struct tms used;
	long call, failed = 0;

	pthread_mutex_lock(&gate);
	waiting++;
	pthread_cond_signal(&arrived);
	while (!is_open)
		pthread_cond_wait(&opened, &gate);
	pthread_mutex_unlock(&gate);
	if (work->which == 0)
		for (call = 0; call < work->calls; call++)
			failed |= syscall(SYS_times, &used) == -1 && errno == EFAULT;
	else
		for (call = 0; call < work->calls; call++)
			failed |= syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &spent);
	return failed ? argument : NULL;
}

static double now(void)
{
	struct timespec value;

	if (clock_gettime(CLOCK_MONOTONIC, &value) != 0)
		fail("clock_gettime", errno);
	return value.tv_sec + value.tv_nsec * 1e-9;
}

static double measure(int which, long threads, long calls)
{
	struct work *works = calloc(threads, sizeof(*works));
	pthread_t *ids = calloc(threads, sizeof(*ids));
	pthread_attr_t small;
	double start;
	void *failed;
	long i;
	int error;

	if (works == NULL || ids == NULL)
		fail("memory", errno);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK);
	waiting = is_open = 0;
	for (i = 0; i < threads; i++) {
		/* The first threads take what does not divide evenly. */
		works[i].calls = calls / threads + (i < calls % threads);
		works[i].which = which;
		error = pthread_create(&ids[i], &small, pound, &works[i]);
		if (error)
			fail("pthread_create", error);
	}
	pthread_mutex_lock(&gate);
	while (waiting < threads)
		pthread_cond_wait(&arrived, &gate);
	start = now();
	is_open = 1;
	pthread_cond_broadcast(&opened);
	pthread_mutex_unlock(&gate);
	for (i = 0; i < threads; i++) {
		error = pthread_join(ids[i], &failed);
		if (error || failed != NULL)
			fail(which == 0 ? "times" : "clock_gettime", error ? error : EINVAL);
	}
	start = now() - start;
	free(works);
	free(ids);
	return start;
}

int main(int argc, char **argv)
{
	char *end_threads = "x", *end_calls = "x";
	long threads = argc == 3 ? strtol(argv[1], &end_threads, 10) : 0;
	long calls = argc == 3 ? strtol(argv[2], &end_calls, 10) : 0;

	if (*end_threads || *end_calls || threads < 1 || threads > THREADS_MAX || calls < threads) {
		fprintf(stderr, "usage: poundtime THREADS CALLS (at least one call a thread)\n");
		return 2;
	}
	printf("threads: %ld\n", threads);
	printf("pound_times: %.9f s\n", measure(0, threads, calls));
	printf("pound_clock_gettime: %.9f s\n", measure(1, threads, calls));
	return fflush(stdout) == 0 ? 0 : 1;
}
