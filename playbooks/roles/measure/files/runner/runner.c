/*
 * perfbisect's runner: executes one run that consists of several commands, as a plan says.
 *
 *     runner PLAN           set up, unless that was done in this folder already; then all points
 *     runner PLAN cleanup   what ends a boot's work; errors are told and do not stop it, and the last is its exit code
 *
 * A plan is lines of text:
 *
 *     needs cpus COUNT      said first, and looked at before anything else is done: so many CPUs,
 *     needs cgroup VERSION  control groups 'v1', 'v2' or 'any' in this kernel,
 *     needs device BYTES    a block device of that size, named by PERFBISECT_BLOCK_DEVICE, that nobody uses
 *     setup | cleanup       the following commands belong to this part
 *     point LABEL           and these are a run with one choice of parameters; "== LABEL" is printed before,
 *                           on a line of its own
 *     atmost VALUE FACTOR   leave this point out where VALUE is more than FACTOR times the CPUs
 *     word TEXT             of a command; "{cpus*FACTOR}" in it becomes that many times the CPUs, at least 1,
 *                           and "{block_device}" the path of the device
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
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* sysexits.h: EX_UNAVAILABLE */
enum { WORDS = 256, LINE = 1 << 14, EX_LACKS = 69 };

static const char *const device_variable = "PERFBISECT_BLOCK_DEVICE";

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

/* The last line that a run leaves on standard error, with this beginning, is told as the reason of its failure. */
static int lacks(const char *format, ...)
{
	va_list arguments;

	fputs("perfbisect-runner: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return EX_LACKS;
}

/* Whether /proc/filesystems has it: "nodev\tcgroup2". */
static int has_file_system(const char *name)
{
	char line[128], found[64];
	FILE *file = fopen("/proc/filesystems", "r");
	int there = 0;

	while (file != NULL && !there && fgets(line, sizeof(line), file) != NULL)
		there = sscanf(line, "nodev %63s", found) == 1 && strcmp(found, name) == 0;
	if (file != NULL)
		fclose(file);
	return there;
}

/* Nothing is ever written to a device that somebody uses: without O_CREAT, O_EXCL asks for it alone. */
static int check_device(unsigned long long bytes)
{
	const char *path = getenv(device_variable);
	unsigned long long size = 0;
	struct stat info;
	int handle, locked = 0;

	if (path == NULL)
		return lacks("this testbed names no block device");
	if (stat(path, &info) != 0)
		return lacks("the block device %s: %s", path, strerror(errno));
	if (!S_ISBLK(info.st_mode))
		return lacks("%s is not a block device", path);
	handle = open(path, O_RDWR | O_EXCL);
	if (handle < 0 && errno == EBUSY)
		return lacks("the block device %s is mounted or in use; nothing was written", path);
	if (handle < 0 && (errno == EROFS || errno == EACCES))
		return lacks("the block device %s is read-only", path);
	if (handle < 0)
		return lacks("the block device %s: %s", path, strerror(errno));
	ioctl(handle, BLKROGET, &locked);
	ioctl(handle, BLKGETSIZE64, &size);
	close(handle);
	if (locked)
		return lacks("the block device %s is read-only", path);
	if (size < bytes)
		return lacks("the block device %s has %llu MiB, %llu are needed", path, size >> 20, bytes >> 20);
	return 0;
}

/* Returns 0 if this machine has what a line of the plan names. */
static int check(const char *need)
{
	int v1, v2;

	if (strncmp(need, "cpus ", 5) == 0) {
		if (cpus() < atoi(need + 5))
			return lacks("%s CPUs are needed, %d can be used", need + 5, cpus());
		return 0;
	}
	if (strncmp(need, "device ", 7) == 0)
		return check_device(strtoull(need + 7, NULL, 10));
	v1 = has_file_system("cgroup"), v2 = has_file_system("cgroup2");
	if (strcmp(need, "cgroup any") == 0 ? v1 || v2 : strcmp(need, "cgroup v1") == 0 ? v1 : v2)
		return 0;
	return lacks("this kernel has no %s", need);
}

/* A copy of the word with its "{cpus*FACTOR}" or "{block_device}" replaced. */
static char *expanded(const char *word)
{
	static const char device[] = "{block_device}";
	const char *from = strstr(word, device), *path = getenv(device_variable), *to;
	char *text;

	if (from != NULL && path != NULL)
		return asprintf(&text, "%.*s%s%s", (int)(from - word), word, path, from + sizeof(device) - 1) < 0 ?
			       NULL : text;
	from = strstr(word, "{cpus*");
	to = from != NULL ? strchr(from, '}') : NULL;
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
	int is_set_up = access(done, F_OK) == 0, left_out = 0, labels = 0, count = 0, code, failed = 0;
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
		if (strncmp(line, "needs ", 6) == 0) {
			/* Once it is set up, the device is in use by ourselves. */
			if (!is_set_up && !cleaning && (code = check(line + 6)) != 0)
				return code;
			continue;
		} else if (strcmp(line, "setup") == 0) {
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
				/* The output of the point before may end without one. */
				printf("%s== %s\n", labels++ > 0 ? "\n" : "", label);
				label[0] = '\0';
			}
			code = execute(words, part != POINT);
			if (code == 0)
				continue;
			fprintf(stderr, "%s ended with code %d\n", words[0], code);
			if (!cleaning)
				return code;
			failed = code;
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
	return failed;
}
