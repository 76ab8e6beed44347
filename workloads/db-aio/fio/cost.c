/*
 * cost: runs a command and says what it cost: CPU time and, where the processor counts them, instructions.
 *
 *     cost [--fio] [NAME=VALUE]... COMMAND [ARGUMENT]...
 *
 * What counts is the command with everything it leaves behind: what daemonises is waited for as well. NAME=VALUE is put
 * into its environment. Its output is printed as it is, and then a line each
 *
 *     cpu: 1234567 us
 *     instructions: 123456789
 *
 * With --fio the output is fio's JSON, and what is printed is JSON: {"cpu": ..., "instructions": ..., "ios": ...,
 * "fio": OUTPUT}, where ios is the sum of all "total_ios" in it. Instructions that nobody counted are left out.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* include/uapi/linux/perf_event.h as it was in the beginning (PERF_ATTR_SIZE_VER0); not every compiler has it. */
struct counted {
	uint32_t type, size;
	uint64_t config, period, sample_type, read_format, flags;
	uint32_t wakeup_events, breakpoint_type;
	uint64_t breakpoint_address;
};
enum { HARDWARE = 0, INSTRUCTIONS = 1, DISABLED = 1 << 0, INHERIT = 1 << 1, ENABLE_ON_EXEC = 1 << 12 };

static void fail(const char *what)
{
	fprintf(stderr, "cost: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* A counter of the child and of all that come from it, from its exec on; -1 where there is none. */
static int counter(pid_t child)
{
	struct counted what = {
		.type = HARDWARE,
		.size = sizeof(what),
		.config = INSTRUCTIONS,
		.flags = DISABLED | INHERIT | ENABLE_ON_EXEC,
	};

	return syscall(SYS_perf_event_open, &what, child, -1, -1, 0UL);
}

static char *read_all(int handle, size_t *length)
{
	size_t room = 1 << 16;
	char *text = malloc(room);
	ssize_t got;

	*length = 0;
	while (text != NULL && (got = read(handle, text + *length, room - *length - 1)) != 0) {
		if (got < 0 && errno != EINTR)
			fail("reading the output");
		*length += got > 0 ? got : 0;
		if (room - *length < 2)
			text = realloc(text, room *= 2);
	}
	if (text == NULL)
		fail("memory");
	text[*length] = '\0';
	return text;
}

static unsigned long long sum_of_ios(const char *text)
{
	static const char key[] = "\"total_ios\"";
	unsigned long long sum = 0;

	while ((text = strstr(text, key)) != NULL) {
		text += sizeof(key) - 1;
		sum += strtoull(text + strspn(text, " :"), NULL, 10);
	}
	return sum;
}

int main(int argc, char **argv)
{
	int output[2], start[2], handle, status, fio = 0, first = 1, code = 127;
	uint64_t instructions = 0;
	struct rusage usage;
	long long cpu;
	size_t length;
	pid_t child, ended;
	char *text, go = 0;

	if (first < argc && strcmp(argv[first], "--fio") == 0)
		fio = first++;
	for (; first < argc && strchr(argv[first], '=') != NULL; first++)
		putenv(argv[first]);
	if (first >= argc) {
		fprintf(stderr, "usage: cost [--fio] [NAME=VALUE]... COMMAND [ARGUMENT]...\n");
		return 2;
	}
	/* Daemons become our children when their parents end, so that their time is ours as well. */
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (pipe(output) != 0 || pipe(start) != 0)
		fail("pipe");
	child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0) {
		close(start[1]);
		if (read(start[0], &go, 1) != 1)
			_exit(127);
		dup2(output[1], 1);
		close(output[0]);
		close(output[1]);
		close(start[0]);
		execvp(argv[first], argv + first);
		fprintf(stderr, "cost: %s: %s\n", argv[first], strerror(errno));
		_exit(127);
	}
	handle = counter(child);
	close(output[1]);
	if (write(start[1], &go, 1) != 1)
		fail("starting the command");
	text = read_all(output[0], &length);
	while ((ended = wait4(-1, &status, 0, NULL)) > 0 || errno == EINTR)
		if (ended == child)
			code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	getrusage(RUSAGE_CHILDREN, &usage);
	cpu = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000LL + usage.ru_utime.tv_usec +
	      usage.ru_stime.tv_usec;
	if (handle < 0 || read(handle, &instructions, sizeof(instructions)) != sizeof(instructions))
		instructions = 0;
	if (fio) {
		const char *document = strchr(text, '{'); /* fio may warn before it */

		printf("{\"cpu\": %lld, \"ios\": %llu", cpu, sum_of_ios(text));
		if (instructions)
			printf(", \"instructions\": %llu", (unsigned long long)instructions);
		printf(", \"fio\": %s}\n", document != NULL ? document : "null");
	} else {
		fwrite(text, 1, length, stdout);
		printf("cpu: %lld us\n", cpu);
		if (instructions)
			printf("instructions: %llu\n", (unsigned long long)instructions);
	}
	return fflush(stdout) == 0 ? code : 1;
}
