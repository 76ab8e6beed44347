/*
 * perfbisect's measuring agent: runs the workload when told to, and says what it cost.
 *
 *     agent prepare FACTS SETTINGS
 *     agent serve [--unasked SETTLE_MS:PAUSE_MS] [--cpus LIST] [--nice N] [--env NAME=VALUE]...
 *                 [--cleanup PLAN] [--undo yes] -- COMMAND [ARGUMENT]...
 *     agent undo
 *     agent observe MONITORS NAME -- COMMAND [ARGUMENT]...
 *
 * 'serve' reads commands, one a line, and answers each with one line of JSON:
 *
 *     run              execute COMMAND once, in its pinned session, in the current folder
 *     monitor NAME     the same with that monitor of MONITORS beside it (see observe.h); before its answer come
 *                      the files that the monitor left
 *     kill             (while one runs) end it and everything in its session's group
 *     pause MS         rest for so many milliseconds of this machine's time
 *     symbols          say where the functions of loaded modules are
 *     quit             end; the end of standard input does the same, and ends a run as well
 *
 * With --unasked it waits for no command: it rests, and then runs COMMAND again and again with pauses between
 * (during a run 'kill' and 'quit' still work, and 'monitor' is obeyed after it). Where a machine's clock counts instructions nothing may come from
 * outside, for it would come at another instant in each boot; whoever listens stops the machine instead.
 *
 * With --undo yes the settings that 'prepare' made are put back when it ends, however it ends: for machines that live
 * on. 'agent undo' does that alone. Processes that left their run's session are ended then, too: whoever makes one to
 * serve several runs finds it there until then. With --cleanup its end is one more answer, {"cleaned":CODE}.
 *
 * Written for every kernel since 2.6.18 and meant to be linked statically: no system call newer than that is
 * needed. While a run lasts the agent sleeps in one poll(); the workload's output goes to files, so that
 * nobody is woken by it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#ifndef PR_SET_CHILD_SUBREAPER
#define PR_SET_CHILD_SUBREAPER 36
#endif

#include "facts.h"
#include "json.h"
#include "observe.h"
#include "settings.h"
#include "symbols.h"

/* More output than this of one run is cut; a metric is printed at the end, so the end is kept. */
enum { OUTPUT_MAX = 1 << 20, ENVIRONMENT_MAX = 64, KERNEL_LINES_MAX = 64, ARGUMENTS_MAX = 512 };

struct options {
	cpu_set_t cpus;
	int pinned;
	int nice;
	int unasked;
	long settle, pause; /* milliseconds, used with --unasked */
	char *environment[ENVIRONMENT_MAX];
	int variables;
	int undo;
	char *cleanup; /* plan whose part of that name is executed at the end */
	char **command;
};

struct moment {
	struct timespec monotonic;
	struct timespec raw;
	unsigned long long ticks;
};

static const char *const monitors = "perfbisect-monitors";
static char wanted[64]; /* monitor that was asked for during a run */
static int child_ended[2]; /* written by the handler of SIGCHLD, read by poll */
static int kernel_log = -1;
static unsigned int runs; /* since the start, those with a monitor and those that failed too */

static unsigned long long ticks(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	unsigned long long count, rate;

	__asm__ volatile("isb; mrs %0, cntvct_el0; mrs %1, cntfrq_el0" : "=r"(count), "=r"(rate));
	return rate > 0 ? (unsigned long long)((unsigned __int128)count * 1000000000 / rate) : 0;
#else
	return 0; /* no clock that is free of the kernel's: the reader sees zero and does not compare */
#endif
}

/*
 * What an emulator may watch for: the begin (1) and the end (2) of a run, an instruction that does nothing with a number
 * in it; before the begin the run's own number, 3 and then its bits, 4 for a zero and 5 for a one, the highest first.
 * A plugin of QEMU counts between them (counters.c); everywhere else they are one more instruction. x86: a long nop, which
 * every processor since the Pentium Pro has; arm64: a constant that is moved to the register that cannot change.
 */
#if defined(__x86_64__) || defined(__i386__)
#define MARK(number) __asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x50, 0x42, " #number ", 0" ::: "memory")
#elif defined(__aarch64__)
#define MARK(number) __asm__ volatile("movz xzr, #(0x5000 | " #number ")" ::: "memory")
#else
#define MARK(number) ((void)0)
#endif

/* Say the number of the next run to whoever watches. */
static void mark_number(unsigned int number)
{
	int bit;

	MARK(3);
	for (bit = 31; bit >= 0; bit--)
		if (number >> bit & 1)
			MARK(5);
		else
			MARK(4);
}

static volatile char *fresh; /* a page that is not there yet */

/*
 * The end of a run. QEMU before 8.0 keeps a pointer to a plugin's callbacks after it has freed them, until the next
 * exception, and aborts if an interrupt comes first. So there is one at once: a page is touched that was given back.
 */
static void mark_end(void)
{
	MARK(2);
	if (fresh != NULL)
		*fresh = 1;
}

static void give_page_back(void)
{
	size_t size = sysconf(_SC_PAGESIZE);

	if (fresh == NULL) {
		void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		fresh = page != MAP_FAILED ? page : NULL;
	} else {
		madvise((void *)fresh, size, MADV_DONTNEED);
	}
}

static struct moment take(void)
{
	struct moment now;

	memset(&now, 0, sizeof(now));
	clock_gettime(CLOCK_MONOTONIC_RAW, &now.raw); /* stays zero before 2.6.28 */
	clock_gettime(CLOCK_MONOTONIC, &now.monotonic);
	now.ticks = ticks();
	return now;
}

static double since(struct timespec start, struct timespec end)
{
	return (double)(end.tv_sec - start.tv_sec) + (end.tv_nsec - start.tv_nsec) * 1e-9;
}

static void on_child(int number)
{
	int saved = errno;
	ssize_t ignored = write(child_ended[1], "", 1);

	(void)ignored, (void)number;
	errno = saved;
}

/* Numbers and ranges: '0', '0-3', '0,2-3'. Returns 0 if it is one. */
static int parse_cpus(const char *text, cpu_set_t *cpus)
{
	char *end;
	long first, last;

	CPU_ZERO(cpus);
	for (;;) {
		first = last = strtol(text, &end, 10);
		if (end == text)
			return -1;
		if (*end == '-') {
			text = end + 1;
			last = strtol(text, &end, 10);
			if (end == text)
				return -1;
		}
		if (first < 0 || last < first || last >= CPU_SETSIZE)
			return -1;
		for (; first <= last; first++)
			CPU_SET(first, cpus);
		if (*end == '\0')
			return 0;
		if (*end != ',')
			return -1;
		text = end + 1;
	}
}

/* In the child: the pinned session, then the command. Reports its errno through `report` if it cannot. */
static void become(const struct options *options, char **command, int out, int err, int report)
{
	int null = open("/dev/null", O_RDONLY), failed;
	sigset_t none;

	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	dup2(null, 0);
	dup2(out, 1);
	dup2(err, 2);
	if (setpriority(PRIO_PROCESS, 0, options->nice) == 0 &&
	    (!options->pinned || sched_setaffinity(0, sizeof(options->cpus), &options->cpus) == 0))
		execve(command[0], command, (char **)options->environment);
	failed = errno;
	if (write(report, &failed, sizeof(failed)) < 0)
		_exit(126);
	_exit(127);
}

/* The next line of standard input without its newline; NULL at the end. Unbuffered, because poll() watches. */
static char *read_command(void)
{
	static char line[256];
	size_t length = 0;
	char byte;
	ssize_t got;

	while ((got = read(0, &byte, 1)) != 0) {
		if (got < 0) {
			if (errno == EINTR)
				continue;
			return NULL;
		}
		if (byte == '\n') {
			line[length] = '\0';
			return line;
		}
		if (length + 1 < sizeof(line))
			line[length++] = byte;
	}
	return NULL;
}

/* Wait for the child; meanwhile only 'kill' and the end of input matter. Returns 1 if it was killed. */
static int attend(pid_t child, int *status, struct rusage *usage, int *over)
{
	struct pollfd watched[2] = { { 0, POLLIN, 0 }, { child_ended[0], POLLIN, 0 } };
	int killed = 0;
	char *command, byte;

	for (;;) {
		pid_t ended;

		while ((ended = wait4(-1, status, WNOHANG, usage)) > 0)
			if (ended == child)
				return killed; /* any other one is an orphan that became ours */
		if (poll(watched, 2, -1) < 0)
			continue; /* interrupted by the signal that we wait for */
		if (watched[1].revents && read(child_ended[0], &byte, 1) < 0 && errno != EINTR && errno != EAGAIN)
			return killed;
		if (watched[0].revents) {
			command = read_command();
			if (command == NULL || strcmp(command, "quit") == 0) {
				*over = 1;
				watched[0].fd = -1;
			}
			if (*over || strcmp(command, "kill") == 0) {
				killed = 1;
				kill(-child, SIGKILL);
				kill(child, SIGKILL); /* should it not have reached setsid() yet */
			} else if (strncmp(command, "monitor ", 8) == 0) {
				snprintf(wanted, sizeof(wanted), "%s", command + 8);
			}
		}
	}
}

static void print_output(const char *name, int fd)
{
	static unsigned char data[OUTPUT_MAX];
	struct stat info;
	off_t start = 0;
	ssize_t got, length = 0;

	if (fstat(fd, &info) == 0 && info.st_size > OUTPUT_MAX)
		start = info.st_size - OUTPUT_MAX;
	while ((got = pread(fd, data + length, OUTPUT_MAX - length, start + length)) > 0)
		length += got;
	printf(",\"%s\":", name);
	json_base64(data, length);
	printf(",\"%s_cut\":%lld", name, (long long)start);
}

/* What the kernel has logged since the last call, warnings and worse. Needs /dev/kmsg as of 3.5. */
static void print_kernel_log(int show)
{
	char record[8192], *text, *end;
	int lines = 0, priority;
	ssize_t got;

	if (show)
		fputs(",\"kernel\":[", stdout);
	while (kernel_log >= 0 && ((got = read(kernel_log, record, sizeof(record) - 1)) > 0 || errno == EPIPE)) {
		if (got <= 0)
			continue; /* EPIPE: records were overwritten, the next read goes on behind them */
		record[got] = '\0';
		priority = atoi(record);
		text = strchr(record, ';');
		if (!show || text == NULL || priority > 4 || lines == KERNEL_LINES_MAX)
			continue;
		text++;
		end = strchr(text, '\n');
		if (lines++ > 0)
			putchar(',');
		json_string(text, end != NULL ? (size_t)(end - text) : strlen(text));
	}
	if (show)
		putchar(']');
}

static void print_taint(void)
{
	char value[32] = "0";
	int fd = open("/proc/sys/kernel/tainted", O_RDONLY);

	if (fd >= 0) {
		ssize_t got = read(fd, value, sizeof(value) - 1);

		value[got > 0 ? got : 0] = '\0';
		close(fd);
	}
	printf(",\"tainted\":%lu", strtoul(value, NULL, 10));
}

static int answer_error(const char *what, int number)
{
	fputs("{\"error\":", stdout);
	json_string(what, strlen(what));
	fputs(",\"reason\":", stdout);
	json_string(strerror(number), strlen(strerror(number)));
	fputs("}\n", stdout);
	fflush(stdout);
	return 0;
}

/* Run COMMAND, with a monitor or NULL. Returns 1 when standard input has ended meanwhile. */
static int run(const struct options *options, char *monitor)
{
	char *observing[ARGUMENTS_MAX] = { "./perfbisect-agent", "observe", (char *)monitors, monitor, "--" };
	char **command = monitor != NULL ? observing : options->command;
	int out = open("run.out", O_CREAT | O_TRUNC | O_RDWR, 0600);
	int err = open("run.err", O_CREAT | O_TRUNC | O_RDWR, 0600);
	int report[2], status = 0, killed, over = 0, exec_errno = 0, failed;
	struct moment start, end;
	struct rusage usage;
	pid_t child;

	if (out < 0 || err < 0 || pipe(report) != 0) {
		failed = errno;
		return answer_error("cannot open the files for the output", failed);
	}
	fcntl(report[1], F_SETFD, FD_CLOEXEC);
	if (monitor != NULL) {
		int i;

		for (i = 0; options->command[i] != NULL && i + 6 < ARGUMENTS_MAX; i++)
			observing[i + 5] = options->command[i];
		observed_clear();
	}
	memset(&usage, 0, sizeof(usage));
	print_kernel_log(0);

	give_page_back();
	mark_number(++runs);
	start = take();
	MARK(1);
	child = fork();
	if (child == 0) {
		close(report[0]);
		become(options, command, out, err, report[1]);
	}
	close(report[1]);
	if (child < 0) {
		failed = errno;
		mark_end();
		close(report[0]);
		return answer_error("cannot fork", failed);
	}
	killed = attend(child, &status, &usage, &over);
	mark_end();
	end = take();

	kill(-child, SIGKILL); /* whatever the workload left behind would disturb the next run */
	if (read(report[0], &exec_errno, sizeof(exec_errno)) != sizeof(exec_errno))
		exec_errno = 0;
	close(report[0]);
	if (monitor != NULL) {
		if (killed)
			trace_off();
		observed_print();
	}
	if (exec_errno != 0) {
		answer_error(command[0], exec_errno);
	} else {
		fputc('{', stdout);
		if (monitor != NULL) {
			fputs("\"monitor\":", stdout);
			json_string(monitor, strlen(monitor));
			fputc(',', stdout);
		}
		printf("\"run\":%u,\"code\":%d,\"signal\":%d,\"killed\":%d", runs, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
		       WIFSIGNALED(status) ? WTERMSIG(status) : 0, killed);
		printf(",\"seconds\":%.9f,\"raw_seconds\":%.9f,\"ticks\":%llu", since(start.monotonic, end.monotonic),
		       since(start.raw, end.raw), end.ticks - start.ticks);
		printf(",\"user\":%ld.%06ld,\"sys\":%ld.%06ld", (long)usage.ru_utime.tv_sec,
		       (long)usage.ru_utime.tv_usec, (long)usage.ru_stime.tv_sec, (long)usage.ru_stime.tv_usec);
		printf(",\"minor_faults\":%ld,\"major_faults\":%ld,\"switches\":%ld,\"preempted\":%ld", usage.ru_minflt,
		       usage.ru_majflt, usage.ru_nvcsw, usage.ru_nivcsw);
		print_output("out", out);
		print_output("err", err);
		print_kernel_log(1);
		print_taint();
		fputs("}\n", stdout);
		fflush(stdout);
	}
	close(out);
	close(err);
	return over;
}

static void rest(long milliseconds)
{
	struct timespec left = { milliseconds / 1000, milliseconds % 1000 * 1000000L };

	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

/*
 * Rest until the clock shows whole seconds. Whoever reads a serial port takes its own time, and the guest's clock goes on
 * meanwhile: without this each run began at another place between two timer ticks.
 */
static void rest_until_second(void)
{
	struct timespec now, left = { 0, 0 };

	clock_gettime(CLOCK_MONOTONIC, &now);
	left.tv_nsec = 1000000000 - now.tv_nsec; /* up to a whole second */
	if (left.tv_nsec == 1000000000) {
		left.tv_sec = 1;
		left.tv_nsec = 0;
	}
	nanosleep(&left, NULL);
}

static void run_unasked(const struct options *options)
{
	rest(options->settle);
	rest_until_second();
	while (!run(options, NULL)) {
		while (wanted[0] != '\0') {
			char name[sizeof(wanted)];

			strcpy(name, wanted);
			wanted[0] = '\0';
			if (run(options, name))
				return;
		}
		tcdrain(1); /* a serial port's interrupts would fall into the next run */
		rest(options->pause);
		rest_until_second();
	}
}

static void clean_up(const struct options *options)
{
	pid_t child = options->cleanup != NULL ? fork() : -1;
	int status = 0;

	if (child == 0) {
		dup2(2, 1);
		execle("./perfbisect-runner", "perfbisect-runner", options->cleanup, "cleanup", (char *)NULL,
		       (char **)options->environment);
		_exit(127);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child > 0) {
		printf("{\"cleaned\":%d}\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
		fflush(stdout);
	}
}

/* Return the parent of a process; 0 if it has gone. Its name, in parentheses, may hold any character. */
static pid_t parent_of(const char *pid)
{
	char path[64], text[512], *behind;
	ssize_t got;
	int fd, parent;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	behind = strrchr(text, ')');
	return behind != NULL && sscanf(behind, ") %*c %d", &parent) == 1 ? parent : 0;
}

#define ORPHAN_ROUNDS 500 /* of 10 ms: a killed process takes a few, where it can end at all */

/*
 * End every process that is left, and what becomes ours by that. Called when nothing of our own runs any more.
 * A process that sleeps in the kernel does not end; after ORPHAN_ROUNDS it is left to init.
 */
static void end_orphans(void)
{
	DIR *processes;
	struct dirent *entry;
	int round;

	for (round = 0; round < ORPHAN_ROUNDS; round++) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (waitpid(-1, NULL, WNOHANG) < 0 || (processes = opendir("/proc")) == NULL)
			return;
		while ((entry = readdir(processes)) != NULL)
			if (atoi(entry->d_name) > 0 && parent_of(entry->d_name) == getpid())
				kill(atoi(entry->d_name), SIGKILL);
		closedir(processes);
		rest(10);
	}
}

static int serve(const struct options *options)
{
	int guard = options->undo ? settings_guard() : -1;
	struct sigaction action;
	char *command;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_child;
	action.sa_flags = SA_NOCLDSTOP | SA_RESTART;
	signal(SIGPIPE, SIG_IGN);
	if (pipe(child_ended) != 0 || sigaction(SIGCHLD, &action, NULL) != 0) {
		perror("agent");
		return 1;
	}
	fcntl(child_ended[0], F_SETFL, O_NONBLOCK);
	fcntl(child_ended[1], F_SETFL, O_NONBLOCK);
	fcntl(child_ended[0], F_SETFD, FD_CLOEXEC);
	fcntl(child_ended[1], F_SETFD, FD_CLOEXEC);
	if (options->undo)
		prctl(PR_SET_CHILD_SUBREAPER, 1); /* as of 3.4; else orphans are init's, and nobody's to end */
	kernel_log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	if (kernel_log >= 0) {
		fcntl(kernel_log, F_SETFD, FD_CLOEXEC);
		lseek(kernel_log, 0, SEEK_END);
	}
	puts("{\"hello\":\"perfbisect agent\",\"protocol\":1}");
	fflush(stdout);
	if (options->unasked) {
		run_unasked(options);
		return 0;
	}
	while ((command = read_command()) != NULL && strcmp(command, "quit") != 0) {
		if (strcmp(command, "run") == 0) {
			if (run(options, NULL))
				break;
		} else if (strncmp(command, "monitor ", 8) == 0) {
			char name[sizeof(wanted)];

			snprintf(name, sizeof(name), "%s", command + 8);
			if (run(options, name))
				break;
		} else if (strncmp(command, "pause ", 6) == 0) {
			rest(strtol(command + 6, NULL, 10));
			puts("{\"paused\":1}");
			fflush(stdout);
		} else if (strcmp(command, "symbols") == 0) {
			symbols_print();
		} else if (strcmp(command, "kill") != 0) { /* a late 'kill' finds its run ended: no answer */
			answer_error(command, EINVAL);
		}
	}
	clean_up(options);
	settings_release(guard);
	if (options->undo)
		end_orphans();
	return 0;
}

static int usage(void)
{
	fputs("usage: agent prepare FACTS SETTINGS\n"
	      "       agent serve [--unasked SETTLE_MS:PAUSE_MS] [--cpus LIST] [--nice N] [--env NAME=VALUE]...\n"
	      "                   [--cleanup PLAN] [--undo yes] -- COMMAND [ARGUMENT]...\n"
	      "       agent undo\n"
	      "       agent observe MONITORS NAME -- COMMAND [ARGUMENT]...\n",
	      stderr);
	return 2;
}

int main(int argc, char **argv)
{
	/* Nothing of the session that started us may leak into a run: not even the size of its environment. */
	static char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin", locale[] = "LC_ALL=C", zone[] = "TZ=UTC";
	static char home[] = "HOME=/";
	struct options options;
	int i;

	if (argc == 4 && strcmp(argv[1], "prepare") == 0)
		return prepare(argv[2], argv[3]);
	if (argc == 2 && strcmp(argv[1], "undo") == 0) {
		settings_undo();
		return 0;
	}
	if (argc > 5 && strcmp(argv[1], "observe") == 0 && strcmp(argv[4], "--") == 0)
		return observe(argv[2], argv[3], argv + 5);
	memset(&options, 0, sizeof(options));
	options.environment[options.variables++] = path;
	options.environment[options.variables++] = locale;
	options.environment[options.variables++] = zone;
	options.environment[options.variables++] = home;
	if (argc < 4 || strcmp(argv[1], "serve") != 0)
		return usage();
	for (i = 2; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2) {
		if (strcmp(argv[i], "--unasked") == 0) {
			options.unasked = 1;
			if (sscanf(argv[i + 1], "%ld:%ld", &options.settle, &options.pause) != 2)
				return usage();
		} else if (strcmp(argv[i], "--cpus") == 0) {
			options.pinned = 1;
			if (parse_cpus(argv[i + 1], &options.cpus) != 0)
				return usage();
		} else if (strcmp(argv[i], "--cleanup") == 0) {
			options.cleanup = argv[i + 1];
		} else if (strcmp(argv[i], "--undo") == 0) {
			options.undo = 1;
		} else if (strcmp(argv[i], "--nice") == 0) {
			options.nice = atoi(argv[i + 1]);
		} else if (strcmp(argv[i], "--env") == 0 && options.variables < ENVIRONMENT_MAX - 1) {
			options.environment[options.variables++] = argv[i + 1];
		} else {
			return usage();
		}
	}
	if (i + 1 >= argc || strcmp(argv[i], "--") != 0)
		return usage();
	options.command = argv + i + 1;
	return serve(&options);
}
