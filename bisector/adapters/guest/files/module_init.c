/*
 * The first process of a guest whose kernel has its drivers as modules: loads those of /perfbisect.modules in that
 * order, mounts the root file system that the kernel's command line names (root=/dev/..., rootfstype=, ro or rw) and
 * hands over to the program that init= names there. It says on the console what it cannot do, in lines that start with
 * "perfbisect: ".
 *
 * /perfbisect.modules holds paths, each ended by a newline.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 10, DISK_SECONDS = 30 };

static char line[4096];

static void say(const char *what, const char *detail, const char *why)
{
	printf("perfbisect: %s %s: %s\n", what, detail, why);
	fflush(stdout);
}

static void load(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);

	/* EEXIST: it was loaded by another one's asking, or is built in. */
	if (file < 0 || (syscall(SYS_finit_module, file, "", 0) != 0 && errno != EEXIST))
		say("cannot load", path, strerror(errno));
	if (file >= 0)
		close(file);
}

static void modules(void)
{
	char path[4096];
	FILE *list = fopen("/perfbisect.modules", "r");

	while (list != NULL && fgets(path, sizeof(path), list) != NULL) {
		path[strcspn(path, "\n")] = '\0';
		load(path);
	}
	if (list != NULL)
		fclose(list);
}

/* The value of NAME= on the command line, which is cut into words; NULL if it is not there. The last one counts. */
static const char *option(const char *name)
{
	static char words[sizeof(line)];
	const char *found = NULL;
	char *word, *rest = words;

	memcpy(words, line, sizeof(line));
	while ((word = strsep(&rest, " \n")) != NULL)
		if (strncmp(word, name, strlen(name)) == 0)
			found = strdup(word + strlen(name));
	return found;
}

int main(void)
{
	const struct timespec nap = { .tv_nsec = POLL_MS * 1000000L };
	int polls = DISK_SECONDS * 1000 / POLL_MS, file;
	const char *root, *kind, *init;
	struct stat about;
	char *argv[2] = { NULL, NULL };

	mount("proc", "/proc", "proc", 0, "");
	mount("devtmpfs", "/dev", "devtmpfs", 0, "");
	file = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
	if (file < 0 || read(file, line, sizeof(line) - 1) < 0)
		say("cannot read", "/proc/cmdline", strerror(errno));
	modules();
	root = option("root=");
	kind = option("rootfstype=");
	init = option("init=");
	if (root == NULL || init == NULL) {
		say("not ready:", "the command line", "it names no root= or no init=");
	} else {
		while (stat(root, &about) != 0 && polls-- > 0)
			nanosleep(&nap, NULL);
		if (mount(root, "/root", kind != NULL ? kind : "ext4", MS_RDONLY, "") != 0) {
			say("not ready: cannot mount", root, strerror(errno));
		} else {
			umount2("/proc", MNT_DETACH);
			mount("/dev", "/root/dev", NULL, MS_MOVE, NULL);
			if (chdir("/root") == 0 && mount(".", "/", NULL, MS_MOVE, NULL) == 0 && chroot(".") == 0) {
				argv[0] = (char *)init;
				execv(init, argv);
			}
			say("not ready: cannot start", init, strerror(errno));
		}
	}
	reboot(RB_AUTOBOOT);
	return 1;
}
