/*
 * The first process of a guest whose user space is an initramfs: for kernels older than any distribution that
 * can be had today. Needs no system call younger than 2.6.18, no network, no disk, and a second serial port.
 *
 * Mounts what programs expect, makes device nodes, and runs the commands of the file /perfbisect.start one
 * after another, in the folder it names, with the serial port as their input and output; it says on the console
 * what it does, in lines that start with "perfbisect: ". When the last command has ended the machine restarts.
 *
 * /perfbisect.start holds texts, each ended by a zero byte: the folder; then for each command the number of its
 * words, and the words.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { WORDS_MAX = 256 };

static const char *const port = "/dev/ttyS1";
static char start[1 << 16];

static void say(const char *what, const char *detail)
{
	printf("perfbisect: %s%s%s\n", what, *detail ? " " : "", detail);
	fflush(stdout);
}

static void attach(const char *kind, const char *where)
{
	mkdir(where, 0755);
	if (mount(kind, where, kind, 0, "") != 0 && errno != EBUSY) {
		char text[128];

		snprintf(text, sizeof(text), "%s: %s", kind, strerror(errno));
		say("cannot mount", text);
	}
}

/* The block devices that this kernel has found; their numbers differ from kernel to kernel. */
static void disks(void)
{
	char line[256], name[64], path[80];
	unsigned int major, minor;
	FILE *file = fopen("/proc/partitions", "r");

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, " %u %u %*u %63s", &major, &minor, name) == 3 && strchr(name, '/') == NULL) {
			snprintf(path, sizeof(path), "/dev/%s", name);
			mknod(path, S_IFBLK | 0600, makedev(major, minor));
		}
	if (file != NULL)
		fclose(file);
}

/* Bytes as they are, at once, whatever the modem lines say. */
static int open_port(void)
{
	struct termios settings;
	int handle = open(port, O_RDWR | O_NOCTTY);

	if (handle < 0 || tcgetattr(handle, &settings) != 0)
		return -1;
	cfmakeraw(&settings);
	cfsetispeed(&settings, B115200);
	cfsetospeed(&settings, B115200);
	settings.c_cflag |= CLOCAL | CREAD;
	settings.c_cflag &= ~CRTSCTS;
	return tcsetattr(handle, TCSANOW, &settings) == 0 ? handle : -1;
}

static void execute(char **words, int handle)
{
	static char *const environment[] = { "PATH=/bin", "HOME=/", NULL };
	pid_t child = fork();
	int status = 0;
	char text[128];

	if (child == 0) {
		setsid();
		dup2(handle, 0);
		dup2(handle, 1);
		execve(words[0], words, environment);
		say("cannot start", words[0]);
		_exit(127);
	}
	while (waitpid(-1, &status, 0) != child)
		if (errno == ECHILD)
			break;
	tcdrain(handle);
	if (status != 0) {
		snprintf(text, sizeof(text), "%s, wait status 0x%x", words[0], status);
		say("a command failed:", text);
	}
}

/* The next text of the file, NULL behind the last one. */
static char *next(char **at, const char *end)
{
	char *text = *at;

	if (text >= end)
		return NULL;
	*at = text + strlen(text) + 1;
	return text;
}

int main(void)
{
	char *at = start, *end = start, *text, *words[WORDS_MAX];
	int file, handle, count, i;
	ssize_t got;

	mkdir("/tmp", 01777);
	attach("proc", "/proc");
	attach("sysfs", "/sys");
	disks();
	say("init", "");
	file = open("/perfbisect.start", O_RDONLY);
	while (file >= 0 && (got = read(file, end, start + sizeof(start) - 1 - end)) > 0)
		end += got;
	text = next(&at, end);
	handle = open_port();
	if (handle < 0)
		say("not ready:", "there is no second serial port");
	else if (text == NULL || chdir(text) != 0)
		say("not ready:", "/perfbisect.start cannot be used");
	else {
		say("ready", "");
		while ((text = next(&at, end)) != NULL) {
			count = atoi(text);
			if (count < 1 || count >= WORDS_MAX)
				break;
			for (i = 0; i < count; i++)
				words[i] = next(&at, end);
			words[count] = NULL;
			execute(words, handle);
		}
		say("the agent has ended", "");
	}
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}
