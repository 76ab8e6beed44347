/* Groups of tasks that share the CPUs: the cpu controller of control groups, version 1 or 2. */
#ifndef PERFBISECT_CGROUP_H
#define PERFBISECT_CGROUP_H

#include <sys/types.h>

struct cgroups {
	int version;
	int mounted;	/* by us, at "cgroup" in the current folder */
	char root[256]; /* where the hierarchy with the cpu controller is mounted */
};

/* Find the hierarchy, or mount it. Returns 0, or -1 after saying on standard error what is missing. */
int cgroups_open(struct cgroups *groups, int version);

/* Make a group (or find it there); `name` may have parents, which exist. Path in 512 bytes. Returns 0 or -1. */
int cgroup_make(const struct cgroups *groups, const char *name, char *path);

/* Limit a group to `quota` microseconds of CPU time in each `period`, both as text. Returns 0 or -1. */
int cgroup_limit(const struct cgroups *groups, const char *path, const char *quota, const char *period);

/* Move a process with all its threads. Returns 0 or -1. */
int cgroup_join(const char *path, pid_t pid);

/* Remove a group whose processes have ended. */
void cgroup_remove(const char *path);

/* Unmount what was mounted. */
void cgroups_close(const struct cgroups *groups);

#endif
