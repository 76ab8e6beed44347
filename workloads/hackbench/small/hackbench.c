/*
 * hackbench: a group of processes that send to each other over socket pairs, as rt-tests' hackbench does.
 *
 *     hackbench GROUPS PAIRS MESSAGES
 *
 * A group has PAIRS senders and PAIRS receivers. Every sender sends MESSAGES messages of 100 bytes to every
 * receiver of its group; a receiver has one socket, into which all senders of the group write. Written for
 * perfbisect: static, without a library but C's, and with more digits than the original prints. Prints:
 *
 *     time: seconds (CLOCK_MONOTONIC) from the moment when all processes are ready until all have ended
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE_BYTES = 100, MOST = 1000 };

static int ready[2], start[2];

static void fail(const char *what)
{
	fprintf(stderr, "hackbench: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec value;

	if (clock_gettime(CLOCK_MONOTONIC, &value) != 0)
		fail("clock_gettime");
	return value.tv_sec + value.tv_nsec * 1e-9;
}

/* Tell that this process is ready, and wait until all are. */
static void wait_for_start(void)
{
	struct pollfd started = { .fd = start[0], .events = POLLIN };
	char byte = 'r';

	if (write(ready[1], &byte, 1) != 1)
		fail("write");
	while (poll(&started, 1, -1) != 1)
		if (errno != EINTR)
			fail("poll");
}

static void send_all(const int *receivers, long pairs, long messages)
{
	char data[MESSAGE_BYTES] = { 0 };
	long message, receiver, done;
	ssize_t sent;

	for (message = 0; message < messages; message++)
		for (receiver = 0; receiver < pairs; receiver++)
			for (done = 0; done < MESSAGE_BYTES; done += sent) {
				sent = write(receivers[receiver], data + done, MESSAGE_BYTES - done);
				if (sent < 0 && errno != EINTR)
					fail("write");
				if (sent < 0)
					sent = 0;
			}
}

static void receive_all(int from, long bytes)
{
	char data[MESSAGE_BYTES];
	ssize_t got;

	while (bytes > 0) {
		got = read(from, data, sizeof(data));
		if (got == 0 || (got < 0 && errno != EINTR))
			fail("read");
		if (got > 0)
			bytes -= got;
	}
}

/* Returns how many processes were started. */
static long start_group(long pairs, long messages)
{
	static int senders_end[MOST];
	long i;

	for (i = 0; i < pairs; i++) {
		int ends[2];
		pid_t child;

		if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
			fail("socketpair");
		child = fork();
		if (child < 0)
			fail("fork");
		if (child == 0) {
			close(ends[1]);
			wait_for_start();
			receive_all(ends[0], pairs * messages * MESSAGE_BYTES);
			_exit(0);
		}
		close(ends[0]);
		senders_end[i] = ends[1];
	}
	for (i = 0; i < pairs; i++) {
		pid_t child = fork();

		if (child < 0)
			fail("fork");
		if (child == 0) {
			wait_for_start();
			send_all(senders_end, pairs, messages);
			_exit(0);
		}
	}
	for (i = 0; i < pairs; i++)
		close(senders_end[i]);
	return 2 * pairs;
}

static long number(const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (*text == '\0' || *end != '\0' || value < 1 || value > 1000000)
		value = 0;
	return value;
}

int main(int argc, char **argv)
{
	long groups = argc == 4 ? number(argv[1]) : 0, pairs = argc == 4 ? number(argv[2]) : 0;
	long messages = argc == 4 ? number(argv[3]) : 0, processes = 0, i;
	double began;
	char byte = 's';
	int status;

	if (groups < 1 || messages < 1 || pairs < 1 || pairs > MOST) {
		fprintf(stderr, "usage: hackbench GROUPS PAIRS MESSAGES\n");
		return 2;
	}
	if (pipe(ready) != 0 || pipe(start) != 0)
		fail("pipe");
	for (i = 0; i < groups; i++)
		processes += start_group(pairs, messages);
	for (i = 0; i < processes; i++)
		if (read(ready[0], &byte, 1) != 1)
			fail("read");

	began = now();
	if (write(start[1], &byte, 1) != 1)
		fail("write");
	for (i = 0; i < processes; i++) {
		while (wait(&status) < 0)
			if (errno != EINTR)
				fail("wait");
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
			fprintf(stderr, "hackbench: a process failed (status 0x%x)\n", status);
			return 1;
		}
	}
	printf("time: %.9f s\n", now() - began);
	return fflush(stdout) == 0 ? 0 : 1;
}
