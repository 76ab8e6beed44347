#include "facts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "json.h"
#include "settings.h"

enum { VALUE_MAX = 4096, SYSCTL_MAX = 256, SKIPS_MAX = 64 };

static const char *skips[SKIPS_MAX];
static int skip_count;
static int printed;

static void fact(const char *name, const char *value, size_t length)
{
	while (length > 0 && (value[length - 1] == '\n' || value[length - 1] == ' '))
		length--;
	fputs(printed++ ? "," : "{", stdout);
	json_string(name, strlen(name));
	putchar(':');
	json_string(value, length);
}

static void text_fact(const char *name, const char *value)
{
	fact(name, value, strlen(value));
}

/* Read a small file whole; returns its length, or -1. O_NONBLOCK: some files of /proc/sys wait for events. */
static ssize_t slurp(const char *path, char *into, size_t room)
{
	ssize_t got, total = 0;
	int fd = open(path, O_RDONLY | O_NONBLOCK);

	if (fd < 0)
		return -1;
	while ((size_t)total < room && (got = read(fd, into + total, room - total)) != 0) {
		if (got < 0) {
			if (errno == EINTR)
				continue;
			close(fd);
			return total > 0 ? total : -1;
		}
		total += got;
	}
	close(fd);
	return total;
}

/* kind 'file': one path. */
static void file_fact(const char *name, const char *path)
{
	char value[VALUE_MAX];
	ssize_t length = slurp(path, value, sizeof(value));

	if (length >= 0)
		fact(name, value, length);
}

/* kind 'glob': a pattern; the last part of each path is appended to the name. */
static void glob_facts(const char *prefix, const char *pattern)
{
	glob_t found;
	char name[256];
	size_t i;

	if (glob(pattern, 0, NULL, &found) != 0)
		return;
	for (i = 0; i < found.gl_pathc; i++) {
		snprintf(name, sizeof(name), "%s%s", prefix, strrchr(found.gl_pathv[i], '/') + 1);
		file_fact(name, found.gl_pathv[i]);
	}
	globfree(&found);
}

/* kind 'line': what follows the colon of the first line of a file that starts with a word. */
static void line_fact(const char *name, const char *path, const char *word)
{
	char value[VALUE_MAX + 1];
	ssize_t length = slurp(path, value, VALUE_MAX);
	char *line, *colon;

	if (length < 0)
		return;
	value[length] = '\0';
	for (line = strtok(value, "\n"); line != NULL; line = strtok(NULL, "\n")) {
		colon = strchr(line, ':');
		if (colon != NULL && strncmp(line, word, strlen(word)) == 0) {
			for (colon++; *colon == ' ' || *colon == '\t'; colon++)
				;
			text_fact(name, colon);
			return;
		}
	}
}

static int skipped(const char *path)
{
	int i;

	for (i = 0; i < skip_count; i++)
		if (fnmatch(skips[i], path, 0) == 0)
			return 1;
	return 0;
}

/* kind 'sysctl': a folder below /proc/sys, with all that is below it; names as sysctl(8) writes them. */
static void sysctl_facts(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	struct stat info;
	char path[512], name[512], value[SYSCTL_MAX], *slash;
	ssize_t length;

	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (skipped(path) || stat(path, &info) != 0)
			continue;
		if (S_ISDIR(info.st_mode)) {
			sysctl_facts(path);
			continue;
		}
		if (!(info.st_mode & 0444) || (length = slurp(path, value, sizeof(value))) < 0)
			continue;
		snprintf(name, sizeof(name), "sysctl.%s", path + strlen("/proc/sys/"));
		for (slash = name; (slash = strchr(slash, '/')) != NULL;)
			*slash = '.';
		fact(name, value, length);
	}
	closedir(dir);
}

/* kind 'notes': the GNU build id in the ELF notes of the running kernel, in hexadecimal. */
static void build_id_fact(const char *name, const char *path)
{
	unsigned char notes[VALUE_MAX];
	char text[2 * 64 + 1];
	ssize_t length = slurp(path, (char *)notes, sizeof(notes));
	ssize_t at = 0;

	while (length - at >= 12) {
		unsigned int head[3], name_room, data_room, i;

		memcpy(head, notes + at, sizeof(head)); /* name size, data size, type */
		if (head[0] > VALUE_MAX || head[1] > VALUE_MAX)
			return;
		name_room = (head[0] + 3) & ~3U;
		data_room = (head[1] + 3) & ~3U;
		if (at + 12 + (ssize_t)name_room + (ssize_t)data_room > length)
			return;
		if (head[2] == 3 && head[0] == 4 && memcmp(notes + at + 12, "GNU", 4) == 0 && head[1] <= 64) {
			for (i = 0; i < head[1]; i++)
				sprintf(text + 2 * i, "%02x", notes[at + 12 + name_room + i]);
			text_fact(name, text);
			return;
		}
		at += 12 + name_room + data_room;
	}
}

static void uname_facts(void)
{
	struct utsname names;

	if (uname(&names) != 0)
		return;
	text_fact("uname.release", names.release);
	text_fact("uname.version", names.version);
	text_fact("uname.machine", names.machine);
}

static void setting_told(const char *name, const char *which, const char *text)
{
	char fact_name[512];

	snprintf(fact_name, sizeof(fact_name), "setting.%.255s.%s", name, which);
	text_fact(fact_name, text);
}

/* Split off the next word; returns NULL at the end of the line. */
static char *word(char **rest)
{
	char *start = *rest + strspn(*rest, " \t\n");

	if (*start == '\0')
		return NULL;
	*rest = start + strcspn(start, " \t\n");
	if (**rest != '\0')
		*(*rest)++ = '\0';
	return start;
}

static void read_fact(char *line)
{
	char *rest = line;
	char *kind = word(&rest), *first, *second;

	if (kind == NULL || kind[0] == '#')
		return;
	first = word(&rest);
	if (first == NULL)
		return;
	if (strcmp(kind, "sysctl") == 0)
		sysctl_facts(first);
	else if (strcmp(kind, "skip") == 0 && skip_count < SKIPS_MAX)
		skips[skip_count++] = strdup(first);
	else if ((second = word(&rest)) == NULL)
		return;
	else if (strcmp(kind, "file") == 0)
		file_fact(first, second);
	else if (strcmp(kind, "glob") == 0)
		glob_facts(first, second);
	else if (strcmp(kind, "notes") == 0)
		build_id_fact(first, second);
	else if (strcmp(kind, "line") == 0) {
		rest[strcspn(rest, "\n")] = '\0';
		line_fact(first, second, rest);
	}
}

static int each_line(const char *path, void (*use)(char *))
{
	char line[1024];
	FILE *file = fopen(path, "r");

	if (file == NULL) {
		fprintf(stderr, "agent: %s: %s\n", path, strerror(errno));
		return 1;
	}
	while (fgets(line, sizeof(line), file) != NULL)
		use(line);
	fclose(file);
	return 0;
}

int prepare(const char *list, const char *settings)
{
	int failed;

	uname_facts();
	failed = each_line(list, read_fact);
	failed |= settings_make(settings, setting_told);
	fputs(printed ? "}\n" : "{}\n", stdout);
	return failed || fflush(stdout) != 0;
}
