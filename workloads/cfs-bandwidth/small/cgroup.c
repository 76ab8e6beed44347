#define _GNU_SOURCE
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static int complain(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	return -1;
}

static int put(const char *folder, const char *name, const char *text)
{
	char path[512 + 64];
	int fd, failed;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY);
	failed = fd < 0 || write(fd, text, strlen(text)) < 0;
	if (failed)
		fprintf(stderr, "%s: '%s' cannot be written: %s\n", path, text, strerror(errno));
	if (fd >= 0)
		close(fd);
	return failed ? -1 : 0;
}

/* Whether a word stands in a list with commas: 'cpu' in 'rw,cpu,cpuacct'. */
static int has_word(const char *list, const char *word)
{
	size_t length = strlen(word);
	const char *at;

	for (at = list; (at = strstr(at, word)) != NULL; at += length)
		if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
			return 1;
	return 0;
}

static int find(struct cgroups *groups)
{
	char line[1024], where[256], kind[64], options[512];
	FILE *file = fopen("/proc/self/mounts", "r");
	int found = 0;

	while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, "%*s %255s %63s %511s", where, kind, options) != 3)
			continue;
		found = groups->version == 2 ? strcmp(kind, "cgroup2") == 0 :
					       strcmp(kind, "cgroup") == 0 && has_word(options, "cpu");
	}
	if (file != NULL)
		fclose(file);
	if (found)
		strcpy(groups->root, where);
	return found;
}

int cgroups_open(struct cgroups *groups, int version)
{
	memset(groups, 0, sizeof(*groups));
	groups->version = version;
	if (!find(groups)) {
		strcpy(groups->root, "cgroup");
		mkdir(groups->root, 0755);
		if (mount("none", groups->root, version == 2 ? "cgroup2" : "cgroup", 0, version == 2 ? NULL : "cpu") != 0)
			return complain(version == 2 ? "control groups of version 2" :
						       "control groups of version 1 with the cpu controller",
					strerror(errno));
		groups->mounted = 1;
	}
	if (version == 2 && put(groups->root, "cgroup.subtree_control", "+cpu") != 0) {
		cgroups_close(groups);
		return complain("the cpu controller of control groups of version 2",
				"not in this kernel, or in use by version 1");
	}
	return 0;
}

int cgroup_make(const struct cgroups *groups, const char *name, char *path)
{
	char parent[512];

	snprintf(path, 512, "%.255s/%.250s", groups->root, name);
	if (mkdir(path, 0755) != 0 && errno != EEXIST)
		return complain(path, strerror(errno));
	if (groups->version == 2 && strchr(name, '/') != NULL) {
		strcpy(parent, path);
		*strrchr(parent, '/') = '\0';
		return put(parent, "cgroup.subtree_control", "+cpu");
	}
	return 0;
}

int cgroup_limit(const struct cgroups *groups, const char *path, const char *quota, const char *period)
{
	char both[128];

	if (groups->version == 1)
		return put(path, "cpu.cfs_period_us", period) || put(path, "cpu.cfs_quota_us", quota) ? -1 : 0;
	snprintf(both, sizeof(both), "%s %s", quota, period);
	return put(path, "cpu.max", both);
}

int cgroup_join(const char *path, pid_t pid)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", (long)pid);
	return put(path, "cgroup.procs", text);
}

void cgroup_remove(const char *path)
{
	rmdir(path);
}

void cgroups_close(const struct cgroups *groups)
{
	if (groups->mounted)
		umount2(groups->root, MNT_DETACH);
}
