/*
 * perfbisect's runner: executes one run that consists of several commands, as a plan says.
 *
 *     runner PLAN           set up, unless that was done in this folder already; then all points
 *     runner PLAN cleanup   what ends a boot's work; errors are told and do not stop it
 *
 * A plan is lines of text:
 *
 *     setup | cleanup       the following commands belong to this part
 *     point LABEL           and these are a run with one choice of parameters; "== LABEL" is printed before
 *     atmost VALUE FACTOR   leave this point out where VALUE is more than FACTOR times the CPUs
 *     word TEXT             of a command; "{cpus*FACTOR}" in it becomes that many times the CPUs, at least 1
 *     end                   of the command, which is executed now
 *
 * The CPUs are those this process may use. The output of setup and cleanup goes to standard error: only a
 * point prints metrics. The first command that fails ends the run, with its own exit code. Static, and needs nothing
 * younger than Linux 2.6.18.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 256, LINE = 1 << 14 };

static const char *const done = "perfbisect-setup.done";

static int cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

static int times_cpus(double factor)
{
	int count = (int)(factor * cpus());

	return count < 1 ? 1 : count;
}

/* A copy of the word with its "{cpus*FACTOR}" replaced. */
static char *expanded(const char *word)
{
	const char *from = strstr(word, "{cpus*");
	const char *to = from != NULL ? strchr(from, '}') : NULL;
	char *text;

	if (to == NULL)
		return strdup(word);
	if (asprintf(&text, "%.*s%d%s", (int)(from - word), word, times_cpus(strtod(from + 6, NULL)), to + 1) < 0)
		return NULL;
	return text;
}

/* Returns the command's exit code, 128 + the signal that ended it, or 127 if it cannot be started. */
static int execute(char **words, int aside)
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		if (aside)
			dup2(2, 1);
		execvp(words[0], words);
		fprintf(stderr, "%s: %s\n", words[0], strerror(errno));
		_exit(127);
	}
	if (child < 0) {
		perror("fork");
		return 127;
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return 127;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	enum { SETUP, CLEANUP, POINT } part = POINT;
	int cleaning = argc == 3 && strcmp(argv[2], "cleanup") == 0;
	int is_set_up = access(done, F_OK) == 0, left_out = 0, count = 0, code;
	static char line[LINE], label[LINE];
	char *words[WORDS];
	FILE *plan;

	if (argc < 2 || argc > 3 || (argc == 3 && !cleaning)) {
		fprintf(stderr, "usage: runner PLAN [cleanup]\n");
		return 2;
	}
	plan = fopen(argv[1], "re");
	if (plan == NULL) {
		perror(argv[1]);
		return 2;
	}
	while (fgets(line, sizeof(line), plan) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strcmp(line, "setup") == 0) {
			part = SETUP;
		} else if (strcmp(line, "cleanup") == 0) {
			part = CLEANUP;
		} else if (strncmp(line, "point ", 6) == 0) {
			part = POINT;
			left_out = 0;
			strcpy(label, line + 6);
		} else if (strncmp(line, "atmost ", 7) == 0) {
			char *factor;
			long value = strtol(line + 7, &factor, 10);

			left_out |= value > times_cpus(strtod(factor, NULL));
		} else if (strncmp(line, "word ", 5) == 0 && count < WORDS - 1) {
			words[count++] = expanded(line + 5);
		} else if (strcmp(line, "end") == 0 && count > 0) {
			words[count] = NULL;
			count = 0;
			if (cleaning != (part == CLEANUP) || (part == SETUP && is_set_up) ||
			    (part == POINT && left_out))
				continue;
			if (part == POINT && label[0] != '\0') {
				printf("== %s\n", label);
				label[0] = '\0';
			}
			code = execute(words, part != POINT);
			if (code == 0)
				continue;
			fprintf(stderr, "%s ended with code %d\n", words[0], code);
			if (!cleaning)
				return code;
		} else {
			fprintf(stderr, "%s: cannot read '%s'\n", argv[1], line);
			return 2;
		}
		if (part == POINT && !is_set_up && !cleaning) {
			int mark = open(done, O_CREAT | O_WRONLY, 0600);

			is_set_up = 1;
			if (mark >= 0)
				close(mark);
		}
	}
	return 0;
}
