#define _GNU_SOURCE
#include "observe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "json.h"

/* A line of JSON holds a megabyte at most. What is larger than FILE_MAX is cut, and said to be: a recording of
   one run has no business to be larger. */
enum { TEXT_MAX = 1024, WORDS = 128, CHUNK = 3 << 18, FILE_MAX = 64 << 20, LOG_MAX = 1 << 20, LOG_READ_ALL = 3 };

struct plan {
	char *files[WORDS], *keeps[WORDS], *functions[WORDS], *words[WORDS], *thens[WORDS];
	int file_count, keep_count, function_count, word_count, then_count;
	int log, trace;
};

static char tracing[64]; /* folder of ftrace's files; empty if there is none */

static void absent(const char *what, const char *why)
{
	FILE *file = fopen(OBSERVED "/absent", "a");

	if (file == NULL)
		return;
	fprintf(file, "%s%s%s\n", what, *why ? ": " : "", why);
	fclose(file);
}

static int put(const char *path, int flags, const char *text)
{
	int fd = open(path, O_WRONLY | flags), failed;

	if (fd < 0)
		return -1;
	failed = *text != '\0' && write(fd, text, strlen(text)) < 0;
	close(fd);
	return failed ? -1 : 0;
}

/* Returns 0, or -1 with errno. Files of /proc have no length beforehand: read until the end. */
static int copy(const char *from, const char *name)
{
	char path[TEXT_MAX], data[1 << 16];
	int in = open(from, O_RDONLY), out, saved;
	ssize_t got;

	if (in < 0)
		return -1;
	snprintf(path, sizeof(path), OBSERVED "/%s", name);
	out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	while ((got = read(in, data, sizeof(data))) > 0 || (got < 0 && errno == EINTR))
		if (got > 0 && write(out, data, got) != got)
			break;
	saved = errno;
	close(in);
	if (out >= 0)
		close(out);
	errno = saved;
	return got == 0 ? 0 : -1;
}

/* "/proc/stat" and "before" become "proc:stat.before". */
static void called(char *name, size_t room, const char *path, const char *when)
{
	char *at;

	snprintf(name, room, "%s%s%s", path + (path[0] == '/'), *when ? "." : "", when);
	for (at = name; *at != '\0'; at++)
		if (*at == '/')
			*at = ':';
}

static void copy_matching(const char *pattern, const char *when, int tell)
{
	char name[TEXT_MAX];
	glob_t found;
	size_t i;

	if (glob(pattern, 0, NULL, &found) != 0) {
		if (tell)
			absent(pattern, "there is no such file");
		return;
	}
	for (i = 0; i < found.gl_pathc; i++) {
		called(name, sizeof(name), found.gl_pathv[i], when);
		if (copy(found.gl_pathv[i], name) != 0 && tell)
			absent(found.gl_pathv[i], strerror(errno));
	}
	globfree(&found);
}

/* The whole log that the kernel still has, by the system call that every kernel has. */
static void copy_log(const char *name)
{
	static char text[LOG_MAX];
	char path[TEXT_MAX];
	int length = klogctl(LOG_READ_ALL, text, sizeof(text)), fd;

	if (length < 0) {
		absent("the kernel's log", strerror(errno));
		return;
	}
	snprintf(path, sizeof(path), OBSERVED "/%s", name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, text, length) != length)
		absent("the kernel's log", strerror(errno));
	if (fd >= 0)
		close(fd);
}

static const char *trace_file(const char *name)
{
	static char path[TEXT_MAX];

	snprintf(path, sizeof(path), "%s/%s", tracing, name);
	return path;
}

static int trace_find(void)
{
	static const char *const folders[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	size_t i;

	for (i = 0; i < 2; i++) {
		strcpy(tracing, folders[i]);
		if (access(trace_file("function_profile_enabled"), F_OK) == 0)
			return 1;
	}
	tracing[0] = '\0';
	return 0;
}

/* Choose the functions and start counting. Returns whether it counts. */
static int trace_on(const struct plan *plan)
{
	int i, chosen = 0;

	if (!trace_find()) {
		mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL); /* before 4.1 only in debugfs */
		if (!trace_find())
			mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
		if (!trace_find()) {
			absent("ftrace's function profiler", "this kernel has none (CONFIG_FUNCTION_PROFILER)");
			return 0;
		}
	}
	put(trace_file("set_ftrace_filter"), O_TRUNC, "");
	for (i = 0; i < plan->function_count; i++) {
		char line[TEXT_MAX];

		snprintf(line, sizeof(line), "%s\n", plan->functions[i]); /* an unended name is refused unheard, at close */
		if (put(trace_file("set_ftrace_filter"), O_APPEND, line) == 0)
			chosen++;
		else
			absent(plan->functions[i], "no function that this kernel can trace");
	}
	if (plan->function_count > 0 && chosen == 0)
		return 0;
	put(trace_file("function_profile_enabled"), 0, "0");
	if (put(trace_file("function_profile_enabled"), 0, "1") != 0) {
		absent("ftrace's function profiler", strerror(errno));
		return 0;
	}
	return 1;
}

void trace_off(void)
{
	if (!trace_find())
		return;
	put(trace_file("function_profile_enabled"), 0, "0");
	put(trace_file("set_ftrace_filter"), O_TRUNC, "");
}

/* One file a CPU. */
static void trace_keep(void)
{
	char pattern[TEXT_MAX];
	glob_t found;
	size_t i;

	put(trace_file("function_profile_enabled"), 0, "0");
	snprintf(pattern, sizeof(pattern), "%s/trace_stat/function*", tracing);
	if (glob(pattern, 0, NULL, &found) == 0) {
		for (i = 0; i < found.gl_pathc; i++)
			copy(found.gl_pathv[i], strrchr(found.gl_pathv[i], '/') + 1);
		globfree(&found);
	}
	put(trace_file("set_ftrace_filter"), O_TRUNC, "");
}

/* out: where its standard output goes, -1: where ours goes. Returns as observe() does, 127: cannot be started. */
static int execute(char **words, int out)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		if (out >= 0)
			dup2(out, 1);
		execvp(words[0], words);
		fprintf(stderr, "%s: %s\n", words[0], strerror(errno));
		_exit(127);
	}
	if (child < 0)
		return 127;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return 127;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void execute_then(char *line)
{
	char *words[WORDS], *name = strtok(line, " "), path[TEXT_MAX];
	int count = 0, out, code;

	while (count < WORDS - 1 && (words[count] = strtok(NULL, " ")) != NULL)
		count++;
	words[count] = NULL;
	if (name == NULL || count == 0)
		return;
	snprintf(path, sizeof(path), OBSERVED "/%s", name);
	out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	code = execute(words, out);
	close(out);
	if (code != 0) {
		snprintf(path, sizeof(path), "%s ended with code %d", words[0], code);
		absent(name, path);
	}
}

static int read_plan(const char *path, const char *wanted, struct plan *plan)
{
	char line[TEXT_MAX];
	int here = 0, found = 0;
	FILE *file = fopen(path, "re");

	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "monitor ", 8) == 0) {
			here = strcmp(line + 8, wanted) == 0;
			found |= here;
		} else if (!here) {
			continue;
		} else if (strncmp(line, "file ", 5) == 0 && plan->file_count < WORDS) {
			plan->files[plan->file_count++] = strdup(line + 5);
		} else if (strncmp(line, "keep ", 5) == 0 && plan->keep_count < WORDS) {
			plan->keeps[plan->keep_count++] = strdup(line + 5);
		} else if (strcmp(line, "log") == 0) {
			plan->log = 1;
		} else if (strncmp(line, "trace", 5) == 0 && plan->function_count < WORDS) {
			plan->trace = 1;
			if (line[5] == ' ')
				plan->functions[plan->function_count++] = strdup(line + 6);
		} else if (strncmp(line, "word ", 5) == 0 && plan->word_count < WORDS - 1) {
			plan->words[plan->word_count++] = strdup(line + 5);
		} else if (strncmp(line, "then ", 5) == 0 && plan->then_count < WORDS) {
			plan->thens[plan->then_count++] = strdup(line + 5);
		}
	}
	if (file != NULL)
		fclose(file);
	return found;
}

static void snapshot(const struct plan *plan, const char *when, int tell)
{
	char name[64];
	int i;

	for (i = 0; i < plan->file_count; i++)
		copy_matching(plan->files[i], when, tell);
	if (plan->log) {
		snprintf(name, sizeof(name), "dmesg.%s", when);
		copy_log(name);
	}
}

int observe(const char *path, const char *name, char **command)
{
	static struct plan plan;
	char *words[2 * WORDS];
	int count, i, code, traced;

	if (!read_plan(path, name, &plan)) {
		fprintf(stderr, "agent: %s: no monitor '%s'\n", path, name);
		return 2;
	}
	memcpy(words, plan.words, sizeof(plan.words));
	count = plan.word_count;
	for (i = 0; command[i] != NULL && count < 2 * WORDS - 1; i++)
		words[count++] = command[i];
	words[count] = NULL;

	snapshot(&plan, "before", 1);
	traced = plan.trace && trace_on(&plan);
	code = execute(words, -1);
	if (traced)
		trace_keep();
	snapshot(&plan, "after", 0);
	for (i = 0; i < plan.keep_count; i++) {
		char kept[TEXT_MAX];

		called(kept, sizeof(kept), plan.keeps[i], "");
		if (copy(plan.keeps[i], kept) != 0)
			absent(plan.keeps[i], strerror(errno));
	}
	if (code == 127 && plan.word_count > 0)
		absent(plan.words[0], "it is not installed here, or cannot be started");
	else
		for (i = 0; i < plan.then_count; i++)
			execute_then(plan.thens[i]);
	return code;
}

static void each_observed(void (*use)(const char *name, const char *path))
{
	DIR *dir = opendir(OBSERVED);
	struct dirent *entry;
	char path[TEXT_MAX];

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), OBSERVED "/%s", entry->d_name);
		use(entry->d_name, path);
	}
	if (dir != NULL)
		closedir(dir);
}

static void forget(const char *name, const char *path)
{
	(void)name;
	unlink(path);
}

void observed_clear(void)
{
	mkdir(OBSERVED, 0700);
	each_observed(forget);
}

static void print_file(const char *name, const char *path)
{
	static unsigned char data[CHUNK];
	int fd = open(path, O_RDONLY);
	ssize_t got, total = 0, length;

	if (fd < 0)
		return;
	do {
		for (length = 0; length < CHUNK && (got = read(fd, data + length, CHUNK - length)) != 0;) {
			if (got < 0 && errno != EINTR)
				break;
			length += got > 0 ? got : 0;
		}
		fputs("{\"file\":", stdout);
		json_string(name, strlen(name));
		fputs(",\"data\":", stdout);
		json_base64(data, length);
		total += length;
		printf(",\"cut\":%d}\n", length == CHUNK && total >= FILE_MAX);
	} while (length == CHUNK && total < FILE_MAX);
	close(fd);
}

void observed_print(void)
{
	each_observed(print_file);
	fflush(stdout);
}
