#define _GNU_SOURCE
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * VALUE: of one file or script. Ubuntu's timers have 450 characters, the even ones of 512 CPUs 1,000; what is put back must
 * be whole. TEXT: what is told, which may be cut. ABSENT: a script's exit code: there is no such thing.
 */
enum { NAME = 256, TEXT = 1024, VALUE = 8192, LINE = VALUE + TEXT, ABSENT = 3 };

/* What is known of one setting: the different texts of its files. */
struct setting {
	char name[NAME], before[TEXT], after[TEXT], error[TEXT];
	int files, failed;
};

static pid_t guardian;

/* Read a file or a script's answer as one line. Returns 0, ABSENT, or -1 with errno. */
static int read_file(const char *path, char *into)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK);
	ssize_t got;

	if (fd < 0)
		return errno == ENOENT ? ABSENT : -1;
	got = read(fd, into, VALUE - 1);
	close(fd);
	if (got < 0)
		return -1;
	into[got] = '\0';
	into[strcspn(into, "\n")] = '\0';
	return 0;
}

static int write_file(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_TRUNC), failed, saved; /* as a shell does it; files of /proc do not mind */

	if (fd < 0)
		return -1;
	failed = write(fd, value, strlen(value)) < 0;
	saved = errno;
	close(fd);
	errno = saved;
	return failed ? -1 : 0;
}

/* Run "sh SCRIPT NAME VERB [VALUE]"; its output goes into `into`. Returns its exit code, or -1. */
static int script(const char *path, const char *name, const char *verb, const char *value, char *into)
{
	char *words[] = { "/bin/sh", (char *)path, (char *)name, (char *)verb, (char *)value, NULL };
	size_t length = 0;
	int answer[2], status;
	ssize_t got;
	pid_t child;

	if (access(words[0], X_OK) != 0)
		return ABSENT;
	if (pipe(answer) != 0 || (child = fork()) < 0)
		return -1;
	if (child == 0) {
		dup2(answer[1], 1);
		dup2(answer[1], 2);
		close(answer[0]);
		execv(words[0], words);
		_exit(127);
	}
	close(answer[1]);
	while (length < VALUE - 1 && (got = read(answer[0], into + length, VALUE - 1 - length)) > 0)
		length += got;
	close(answer[0]);
	into[length] = '\0';
	into[strcspn(into, "\n")] = '\0';
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Add a text to a list of different ones, which is cut where it gets too long. */
static void add(char *list, const char *text)
{
	size_t length = strlen(list);

	if (text[0] != '\0' && strstr(list, text) == NULL)
		snprintf(list + length, TEXT - length, "%s%s", length > 0 ? ", " : "", text);
}

/* Of "always [madvise] never" the one that is chosen; anything else as it is. */
static const char *chosen(char *text)
{
	char *from = strchr(text, '['), *to = from != NULL ? strchr(from, ']') : NULL;

	if (to == NULL)
		return text;
	*to = '\0';
	return from + 1;
}

static void note(FILE *undo, const char *name, const char *place, char *before, const char *after)
{
	if (undo == NULL || strcmp(before, after) == 0)
		return;
	fprintf(undo, "%s %s %s\n", name, place, chosen(before));
	fflush(undo);
}

static void set_file(struct setting *setting, const char *path, const char *value, FILE *undo)
{
	char before[VALUE] = "", after[VALUE] = "";
	int known = read_file(path, before);

	setting->files++;
	if (write_file(path, value) != 0) {
		setting->failed++;
		add(setting->error, strerror(errno));
	}
	if (known == 0 && read_file(path, after) == 0) {
		add(setting->before, before);
		add(setting->after, after);
		note(undo, setting->name, path, before, after);
	}
}

static void set_script(struct setting *setting, const char *path, const char *value, FILE *undo)
{
	char place[NAME], before[VALUE], after[VALUE], said[VALUE] = "";
	int code = script(path, setting->name, "get", NULL, before);

	if (code == ABSENT)
		return;
	setting->files++;
	if (code == 0) {
		/* Noted first: one that fails or is killed may have switched off some of many. */
		snprintf(place, sizeof(place), "!%s", path);
		note(undo, setting->name, place, before, value);
		code = script(path, setting->name, "set", value, said);
	}
	if (code != 0 || script(path, setting->name, "get", NULL, after) != 0) {
		setting->failed++;
		add(setting->error, said[0] != '\0' ? said : "its script failed");
		return;
	}
	add(setting->before, before);
	add(setting->after, after);
}

static void finish(const struct setting *setting, setting_fact tell)
{
	char counted[TEXT + 64];

	if (setting->name[0] == '\0')
		return;
	tell(setting->name, "before", setting->files > 0 ? setting->before : "absent");
	tell(setting->name, "after", setting->files > 0 ? setting->after : "absent");
	if (setting->failed == 0)
		return;
	snprintf(counted, sizeof(counted), setting->files > 1 ? "%s (%d of %d files)" : "%s", setting->error,
		 setting->failed, setting->files);
	tell(setting->name, "error", counted);
}

/* Split a line into name, place and value. Returns 0 if it has all three. */
static int split(char *line, char **name, char **place, char **value)
{
	line[strcspn(line, "\n")] = '\0';
	*name = strtok(line, " ");
	*place = strtok(NULL, " ");
	*value = strtok(NULL, "");
	return *name != NULL && *place != NULL && *value != NULL ? 0 : -1;
}

int settings_make(const char *path, setting_fact tell)
{
	char line[LINE], *name, *place, *value;
	FILE *file = fopen(path, "re"), *undo;
	struct setting setting;
	glob_t found;
	size_t i;

	if (file == NULL) {
		fprintf(stderr, "agent: %s: %s\n", path, strerror(errno));
		return 1;
	}
	undo = fopen(UNDO, "we");
	memset(&setting, 0, sizeof(setting));
	while (fgets(line, sizeof(line), file) != NULL) {
		if (split(line, &name, &place, &value) != 0)
			continue;
		if (strcmp(name, setting.name) != 0) {
			finish(&setting, tell);
			memset(&setting, 0, sizeof(setting));
			snprintf(setting.name, sizeof(setting.name), "%s", name);
		}
		if (place[0] == '!') {
			set_script(&setting, place + 1, value, undo);
		} else if (glob(place, 0, NULL, &found) == 0) {
			for (i = 0; i < found.gl_pathc; i++)
				set_file(&setting, found.gl_pathv[i], value, undo);
			globfree(&found);
		}
	}
	finish(&setting, tell);
	fclose(file);
	if (undo != NULL)
		fclose(undo);
	return 0;
}

void settings_undo(void)
{
	char line[LINE], said[VALUE], *name, *place, *value, **lines = NULL, **more;
	FILE *file = fopen(UNDO, "re");
	size_t count = 0;

	/* On a machine of 1,000 CPUs some thousand idle states and interrupts. */
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		more = realloc(lines, (count + 1) * sizeof(*lines));
		if (more == NULL)
			break;
		lines = more;
		lines[count++] = strdup(line);
	}
	if (file != NULL)
		fclose(file);
	while (count-- > 0)
		if (lines[count] != NULL && split(lines[count], &name, &place, &value) == 0) {
			if (place[0] == '!')
				script(place + 1, name, "set", value, said);
			else
				write_file(place, value);
		}
	unlink(UNDO);
}

int settings_guard(void)
{
	int alive[2], ready[2], null;
	char byte;

	if (access(UNDO, F_OK) != 0 || pipe(alive) != 0 || pipe(ready) != 0)
		return -1;
	guardian = fork();
	if (guardian == 0) {
		/* A session of its own: what is sent to the agent's group does not reach it. */
		setsid();
		signal(SIGTERM, SIG_IGN);
		signal(SIGHUP, SIG_IGN);
		null = open("/dev/null", O_RDWR);
		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		close(alive[1]);
		close(ready[0]);
		close(ready[1]);
		while (read(alive[0], &byte, 1) < 0 && errno == EINTR)
			;
		settings_undo();
		_exit(0);
	}
	close(alive[0]);
	close(ready[1]);
	while (read(ready[0], &byte, 1) < 0 && errno == EINTR) /* before that it would be killed with our group */
		;
	close(ready[0]);
	fcntl(alive[1], F_SETFD, FD_CLOEXEC);
	return alive[1];
}

void settings_release(int guard)
{
	if (guard < 0)
		return;
	close(guard);
	while (waitpid(guardian, NULL, 0) < 0 && errno == EINTR)
		;
}
