/*
 * The first process of a guest: makes a read-only root usable, brings up the network that QEMU's user mode
 * offers, starts sshd and says on the console when it listens. Static, so that it runs wherever the kernel
 * does. Everything it says starts with "perfbisect: "; the testbed reads those lines.
 *
 * Signals, as busybox's init has them: SIGUSR2 powers off, SIGTERM and SIGINT (Ctrl-Alt-Del) restart.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/route.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 20, SSHD_SECONDS = 60, ENTROPY_BYTES = 64 };

/* From the kernel's linux/random.h, which musl does not bring. */
#define ADD_ENTROPY _IOW('R', 0x03, int[2])
#define DO_NOT_WAIT 1

static pid_t sshd;

static void say(const char *what, const char *detail)
{
	printf("perfbisect: %s%s%s\n", what, *detail ? " " : "", detail);
	fflush(stdout);
}

static void attach(const char *kind, const char *where, unsigned long flags, const char *options)
{
	/* EBUSY: the kernel did it already (CONFIG_DEVTMPFS_MOUNT). */
	if (mount(kind, where, kind, flags, options) != 0 && errno != EBUSY) {
		char text[128];

		snprintf(text, sizeof(text), "%s on %s: %s", kind, where, strerror(errno));
		say("cannot mount", text);
	}
}

static void mounts(void)
{
	attach("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
	attach("sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
	attach("devtmpfs", "/dev", MS_NOSUID, "");
	mkdir("/dev/pts", 0755);
	mkdir("/dev/shm", 0755);
	attach("devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "mode=0620,ptmxmode=0666");
	attach("tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777");
	attach("tmpfs", "/tmp", MS_NOSUID | MS_NODEV, "mode=1777");
	attach("tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=0755");
	attach("tmpfs", "/var", MS_NOSUID | MS_NODEV, "mode=0755");
	attach("tmpfs", "/root", MS_NOSUID | MS_NODEV, "mode=0700");
	attach("tmpfs", "/work", MS_NOSUID | MS_NODEV, "mode=0755");
	mkdir("/run/sshd", 0755);
	mkdir("/run/lock", 0755);
	mkdir("/var/tmp", 01777);
	mkdir("/var/log", 0755);
	/* Read by D-Bus clients and by 'perf'; there is no daemon that would want it to be unique. */
	symlink("/run", "/var/run");
}

static struct sockaddr *ipv4(struct sockaddr *into, const char *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)into;

	memset(into, 0, sizeof(*into));
	in->sin_family = AF_INET;
	inet_pton(AF_INET, address, &in->sin_addr);
	return into;
}

static int up(int handle, const char *interface, const char *address, const char *mask)
{
	struct ifreq request;

	memset(&request, 0, sizeof(request));
	strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
	ipv4(&request.ifr_addr, address);
	if (ioctl(handle, SIOCSIFADDR, &request) != 0)
		return -1;
	ipv4(&request.ifr_netmask, mask);
	if (ioctl(handle, SIOCSIFNETMASK, &request) != 0)
		return -1;
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	return ioctl(handle, SIOCSIFFLAGS, &request);
}

static void network(void)
{
	int handle = socket(AF_INET, SOCK_DGRAM, 0);
	struct rtentry route;

	if (handle < 0 || up(handle, "lo", "127.0.0.1", "255.0.0.0") != 0)
		say("no loopback:", strerror(errno));
	/* What QEMU's user network gives its first guest. */
	if (up(handle, "eth0", "10.0.2.15", "255.255.255.0") != 0) {
		say("no network:", strerror(errno));
		return;
	}
	memset(&route, 0, sizeof(route));
	ipv4(&route.rt_gateway, "10.0.2.2");
	ipv4(&route.rt_dst, "0.0.0.0");
	ipv4(&route.rt_genmask, "0.0.0.0");
	route.rt_flags = RTF_UP | RTF_GATEWAY;
	if (ioctl(handle, SIOCADDRT, &route) != 0)
		say("no route:", strerror(errno));
	close(handle);
}

/* Without it sshd waits for minutes on a kernel that trusts neither RDRAND nor the bootloader's seed. */
static void entropy(void)
{
	struct {
		int bits, size;
		unsigned char bytes[ENTROPY_BYTES];
	} pool;
	unsigned char probe;
	struct timespec now;
	unsigned long mixed;
	int handle;
	size_t i;

	if (syscall(SYS_getrandom, &probe, 1, DO_NOT_WAIT) == 1)
		return;
	handle = open("/dev/urandom", O_RDWR);
	if (handle < 0)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	mixed = (unsigned long)now.tv_nsec + 1;
	if (read(handle, pool.bytes, sizeof(pool.bytes)) < 0)
		memset(pool.bytes, 0, sizeof(pool.bytes));
	for (i = 0; i < sizeof(pool.bytes); i++) {
		mixed = mixed * 6364136223846793005UL + 1442695040888963407UL;
		pool.bytes[i] ^= (unsigned char)(mixed >> 56);
	}
	pool.bits = 8 * ENTROPY_BYTES;
	pool.size = ENTROPY_BYTES;
	if (ioctl(handle, ADD_ENTROPY, &pool) != 0)
		say("cannot add entropy:", strerror(errno));
	close(handle);
}

static pid_t start_sshd(void)
{
	/* -r: no second exec for each connection, 0.2 s under emulation; the guest lives for one trial. */
	static char *const argv[] = { "/usr/sbin/sshd", "-D", "-r", "-E", "/run/sshd.log", NULL };
	static char *const envp[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", NULL };
	pid_t child = fork();

	if (child == 0) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		setsid();
		execve(argv[0], argv, envp);
		say("cannot start sshd:", strerror(errno));
		_exit(127);
	}
	return child;
}

/*
 * Whether somebody listens on port 22, by the kernel's own table: connecting would cost sshd a fork, and
 * binding would take the port from an sshd that is about to.
 */
static int listens(void)
{
	char line[256];
	unsigned int port, state;
	int found = 0;
	FILE *file = fopen("/proc/net/tcp", "r");

	while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL)
		found = sscanf(line, " %*d: %*x:%x %*x:%*x %x", &port, &state) == 2 && port == 22 && state == 10;
	if (file != NULL)
		fclose(file);
	return found;
}

static void sshd_log(void)
{
	char line[256];
	FILE *file = fopen("/run/sshd.log", "r");

	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		line[strcspn(line, "\r\n")] = '\0';
		say("sshd says:", line);
	}
	if (file != NULL)
		fclose(file);
}

/* Wait for a child or a signal, at most this long. */
static void serve(const sigset_t *set, const struct timespec *limit)
{
	int number = limit != NULL ? sigtimedwait(set, NULL, limit) : sigwaitinfo(set, NULL);
	pid_t child;
	int status;

	if (number == SIGUSR2 || number == SIGTERM || number == SIGINT) {
		sync();
		reboot(number == SIGUSR2 ? RB_POWER_OFF : RB_AUTOBOOT);
	}
	while ((child = waitpid(-1, &status, WNOHANG)) > 0)
		if (child == sshd) {
			sshd_log();
			say("sshd has ended", "");
			sshd = 0;
		}
}

int main(void)
{
	const struct timespec nap = { .tv_nsec = POLL_MS * 1000000L };
	int polls = SSHD_SECONDS * 1000 / POLL_MS;
	sigset_t set;

	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	reboot(RB_DISABLE_CAD);
	umask(0);
	mounts();
	umask(022);
	say("init", "");
	sethostname("guest", 5);
	network();
	entropy();
	sshd = start_sshd();
	while (sshd > 0 && polls-- > 0 && !listens())
		serve(&set, &nap);
	if (sshd > 0 && listens())
		say("ready", "");
	else
		say("not ready", "");
	for (;;)
		serve(&set, NULL);
}
