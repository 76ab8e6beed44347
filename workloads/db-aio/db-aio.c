/*
 * db-aio: what a transaction-processing database asks of the kernel, without a database.
 *
 *     db-aio DEVICE [NAME=VALUE]...
 *
 * Random reads and writes of data blocks and sequential writes of a log, all asynchronous (io_submit) and direct
 * (O_DIRECT) on a block device, so many at a time. The mix is a fixed sequence of pseudo-random numbers.
 *
 *     ios=N         so many I/Os                                        20000
 *     depth=N       so many of them at a time                           16
 *     block=BYTES   of a data block                                     8192
 *     log=BYTES     of a log write                                      4096
 *     read=PERCENT  share of reads                                      70
 *     logs=PERCENT  share of log writes; the rest are writes of data    10
 *     size=MIB      so much of the device is used, an eighth for the log 16
 *     seed=N        of the sequence                                     1
 *
 * DEVICE 'memory' is a file on ext2 on the first RAM disk: before 2.6.25 a RAM disk itself took no direct I/O, so
 * this is what every kernel can do, and nothing in it waits. 'auto' is the disk with "perfbisect" in its serial number,
 * else memory. What is on the device is lost, so it must be meant for this: a RAM disk, or a device with "perfbisect"
 * in its name, its serial number or the name of the file behind it. One that is mounted or used otherwise is refused.
 *
 * System calls are made directly and their structures declared here: AIO has no place in the C library, and the
 * headers of a kernel are not at hand for every compiler. Nothing younger than Linux 2.6.18 is needed. Each
 * latency is a difference of the processor's time stamp counter: asking the kernel for the time costs a system call
 * on one kernel and none on the next, and would be part of what is measured.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ext2.h"

enum { DEPTH_MAX = 1024, FILL = 1 << 20, READ = 0, WRITE = 1, LOG = 2, KINDS = 3 };

/* include/linux/aio_abi.h, 64-bit little-endian */
enum { IOCB_CMD_PREAD = 0, IOCB_CMD_PWRITE = 1 };
struct iocb {
	uint64_t data;
	uint32_t key, flags;
	uint16_t opcode;
	int16_t priority;
	uint32_t file;
	uint64_t buffer, bytes;
	int64_t offset;
	uint64_t reserved;
	uint32_t more_flags, event_file;
};
struct io_event {
	uint64_t data, object;
	int64_t result, result2;
};

struct options {
	long ios, depth, block, log, read, logs, size, seed;
};

struct slot {
	struct iocb request;
	uint64_t started;
	int kind;
	unsigned char *buffer;
};

static const char *const kind_names[KINDS] = { "read", "write", "log" };
static struct slot slots[DEPTH_MAX];
static uint64_t random_state;

static void fail(const char *what)
{
	fprintf(stderr, "db-aio: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void refuse(const char *device, const char *why)
{
	fprintf(stderr, "db-aio: %s: %s\n", device, why);
	exit(1);
}

/* xorshift64* (Vigna 2016): the same sequence everywhere, a few instructions a number. */
static uint32_t draw(uint32_t below)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (uint32_t)(((random_state * 2685821657736338717ULL) >> 32) * below >> 32);
}

static double seconds_of(struct timespec value)
{
	return value.tv_sec + value.tv_nsec * 1e-9;
}

static double clock_now(clockid_t clock)
{
	struct timespec value;

	if (clock_gettime(clock, &value) != 0)
		fail("clock_gettime");
	return seconds_of(value);
}

static uint64_t ticks(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __builtin_ia32_rdtsc();
#else
	struct timespec value;

	clock_gettime(CLOCK_MONOTONIC, &value);
	return (uint64_t)value.tv_sec * 1000000000u + value.tv_nsec;
#endif
}

static int first_line(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "r");
	int got = file != NULL && fgets(text, size, file) != NULL;

	if (file != NULL)
		fclose(file);
	if (got)
		text[strcspn(text, "\n")] = '\0';
	return got;
}

/* Whether a whole disk (its name below /sys/block) says that it is ours. */
static int named_for_us(const char *name)
{
	static const char *const files[] = { "serial", "device/serial", "loop/backing_file", "dm/name" };
	char path[PATH_MAX], text[PATH_MAX];
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(*files); i++) {
		snprintf(path, sizeof(path), "/sys/block/%s/%s", name, files[i]);
		if (first_line(path, text, sizeof(text)) && strstr(text, "perfbisect") != NULL)
			return 1;
	}
	return 0;
}

static int is_ram_disk(const char *name)
{
	return strncmp(name, "ram", 3) == 0 && isdigit((unsigned char)name[3]);
}

/* The disk that is named for us, or NULL. */
static const char *find_disk(void)
{
	static char path[PATH_MAX];
	struct dirent *entry;
	DIR *folder = opendir("/sys/block");

	path[0] = '\0';
	while (folder != NULL && (entry = readdir(folder)) != NULL)
		if (entry->d_name[0] != '.' && named_for_us(entry->d_name)) {
			snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
			break;
		}
	if (folder != NULL)
		closedir(folder);
	return path[0] != '\0' ? path : NULL;
}

/* Returns its handle; ends the program with the reason if it is not to be written to. flags: O_DIRECT or 0. */
static int open_device(const char *device, const struct options *options, int flags)
{
	uint64_t bytes;
	char path[PATH_MAX];
	const char *name;
	struct stat info;
	int handle, flag = 0, sector = 512;

	if (realpath(device, path) == NULL || stat(path, &info) != 0)
		refuse(device, errno == ENOENT ? "there is no such device" : strerror(errno));
	if (!S_ISBLK(info.st_mode))
		refuse(device, "is not a block device");
	name = strrchr(path, '/') + 1;
	if (!is_ram_disk(name) && !named_for_us(name) && strstr(device, "perfbisect") == NULL)
		refuse(device, "is not named for this: what is on it would be lost (its name, its serial number or the "
			       "file behind it must contain \"perfbisect\")");
	/* Without O_CREAT, O_EXCL asks for the device alone: not mounted, not swapped on, nor any part of it. */
	handle = open(path, O_RDWR | O_EXCL | flags);
	if (handle < 0 && errno == EINVAL)
		refuse(device, "takes no direct I/O; with this kernel use 'memory'");
	if (handle < 0)
		refuse(device, errno == EBUSY ? "is mounted or in use; nothing was written" : strerror(errno));
	if (ioctl(handle, BLKROGET, &flag) == 0 && flag)
		refuse(device, "is read-only");
	if (ioctl(handle, BLKGETSIZE64, &bytes) != 0)
		fail("size of the device");
	ioctl(handle, BLKSSZGET, &sector);
	if (options->block % sector || options->log % sector) {
		fprintf(stderr, "db-aio: block and log must be multiples of %s's %d bytes\n", device, sector);
		exit(1);
	}
	if (bytes < (uint64_t)options->size << 20) {
		fprintf(stderr, "db-aio: %s has %llu MiB, size=%ld needs more\n", device,
			(unsigned long long)(bytes >> 20), options->size);
		exit(1);
	}
	return handle;
}

/* A file of options->size MiB on a file system of its own; nothing of it is to be seen once this program has ended. */
static int open_memory(const struct options *options)
{
	static const char *const device = "/dev/ram0", *const place = "db-aio.memory", *const file = EXT2_FILE;
	char path[PATH_MAX];
	int handle = open_device(device, options, 0);

	if (ext2_format(handle, (uint64_t)options->size << 20) != 0 || fsync(handle) != 0)
		fail("making a file system on the RAM disk");
	close(handle);
	if (mkdir(place, 0700) != 0 && errno != EEXIST)
		fail(place);
	if (mount(device, place, "ext2", MS_NOATIME, NULL) != 0)
		fail(errno == ENODEV ? "this kernel has no ext2" : "mounting the RAM disk");
	snprintf(path, sizeof(path), "%s/%s", place, file);
	handle = open(path, O_RDWR | O_DIRECT);
	/* Taken out of sight at once: it lives for as long as this program has its file open, killed or not. */
	if (umount2(place, MNT_DETACH) != 0)
		fail("unmounting the RAM disk");
	if (handle < 0)
		fail("the file on the RAM disk");
	return handle;
}

static unsigned char *pages(size_t bytes)
{
	unsigned char *found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (found == MAP_FAILED)
		fail("memory");
	memset(found, 'd', bytes);
	return found;
}

/* Blocks that were never written are read in another way than those that were, and by other rules in each kernel. */
static void fill(int handle, uint64_t bytes)
{
	unsigned char *buffer = pages(FILL);
	uint64_t done = 0;

	while (done < bytes) {
		ssize_t got = pwrite(handle, buffer, FILL, done);

		if (got <= 0)
			fail("filling the device");
		done += got;
	}
	munmap(buffer, FILL);
}

static void submit(long context, int handle, const struct options *o, struct slot *slot)
{
	struct iocb *request = &slot->request, *list[1] = { request };
	uint64_t log_start = ((uint64_t)o->size << 20) / 8 * 7;
	static uint64_t log_next;
	uint32_t chance = draw(100);

	slot->kind = chance < (uint32_t)o->read ? READ : chance < (uint32_t)(o->read + o->logs) ? LOG : WRITE;
	request->opcode = slot->kind == READ ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE;
	request->file = handle;
	request->buffer = (uintptr_t)slot->buffer;
	request->data = (uintptr_t)slot;
	if (slot->kind == LOG) {
		if (log_next + o->log > ((uint64_t)o->size << 20) / 8)
			log_next = 0;
		request->bytes = o->log;
		request->offset = log_start + log_next;
		log_next += o->log;
	} else {
		request->bytes = o->block;
		request->offset = (int64_t)draw(log_start / o->block) * o->block;
	}
	slot->started = ticks();
	while (syscall(SYS_io_submit, context, 1L, list) != 1)
		if (errno != EAGAIN && errno != EINTR)
			fail("io_submit");
}

static int by_size(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* Nearest rank: the smallest value that at least this share of all values does not exceed. */
static double percentile(const uint64_t *sorted, long count, double share, double tick)
{
	long rank = (long)(share * count);

	if (rank < share * count)
		rank++;
	return sorted[rank < 1 ? 0 : rank - 1] * tick;
}

static void print_latencies(int kind, uint64_t *values, long count, double tick)
{
	if (count == 0)
		return;
	qsort(values, count, sizeof(*values), by_size);
	printf("%s_p50: %.3f us\n", kind_names[kind], percentile(values, count, 0.50, tick));
	printf("%s_p95: %.3f us\n", kind_names[kind], percentile(values, count, 0.95, tick));
	printf("%s_p99: %.3f us\n", kind_names[kind], percentile(values, count, 0.99, tick));
}

static void read_option(struct options *o, const char *text)
{
	const struct {
		const char *name;
		long *value, low, high;
	} known[] = {
		{ "ios", &o->ios, 1, 1L << 30 },	  { "depth", &o->depth, 1, DEPTH_MAX },
		{ "block", &o->block, 512, 1 << 20 },	  { "log", &o->log, 512, 1 << 20 },
		{ "read", &o->read, 0, 100 },		  { "logs", &o->logs, 0, 100 },
		{ "size", &o->size, 8, 1L << 20 },	  { "seed", &o->seed, 1, LONG_MAX },
	};
	const char *equals = strchr(text, '=');
	size_t i;
	char *end;

	for (i = 0; equals != NULL && i < sizeof(known) / sizeof(*known); i++) {
		long value;

		if (strncmp(text, known[i].name, equals - text) != 0 || known[i].name[equals - text] != '\0')
			continue;
		value = strtol(equals + 1, &end, 10);
		if (end == equals + 1 || *end != '\0' || value < known[i].low || value > known[i].high) {
			fprintf(stderr, "db-aio: '%s': expected a number from %ld to %ld\n", text, known[i].low,
				known[i].high);
			exit(2);
		}
		*known[i].value = value;
		return;
	}
	fprintf(stderr, "db-aio: unknown option '%s'; the source says which there are\n", text);
	exit(2);
}

int main(int argc, char **argv)
{
	struct options o = { 20000, 16, 8192, 4096, 70, 10, 16, 1 };
	struct rusage before, after;
	uint64_t *latencies[KINDS], moved = 0, first_tick, all_ticks;
	long context = 0, submitted = 0, done = 0, counts[KINDS] = { 0, 0, 0 };
	double real, cpu, tick, user, sys;
	struct io_event events[64];
	const char *device;
	int handle, i;

	if (argc < 2) {
		fprintf(stderr, "usage: db-aio DEVICE [NAME=VALUE]...\n");
		return 2;
	}
	for (i = 2; i < argc; i++)
		read_option(&o, argv[i]);
	if (o.read + o.logs > 100) {
		fprintf(stderr, "db-aio: read and logs together are more than 100%%\n");
		return 2;
	}
	device = argv[1];
	if (strcmp(device, "auto") == 0 && (device = find_disk()) == NULL)
		device = "memory";
	handle = strcmp(device, "memory") == 0 ? open_memory(&o) : open_device(device, &o, O_DIRECT);
	random_state = o.seed;
	for (i = 0; i < KINDS; i++) /* written once, so that no page fault falls into the run */
		latencies[i] = (uint64_t *)pages(o.ios * sizeof(uint64_t));
	for (i = 0; i < o.depth; i++)
		slots[i].buffer = pages(o.block > o.log ? o.block : o.log);
	fill(handle, (uint64_t)o.size << 20);
	if (syscall(SYS_io_setup, o.depth, &context) != 0)
		fail(errno == ENOSYS ? "this kernel has no asynchronous I/O (CONFIG_AIO)" : "io_setup");

	getrusage(RUSAGE_SELF, &before);
	real = clock_now(CLOCK_MONOTONIC);
	cpu = clock_now(CLOCK_PROCESS_CPUTIME_ID);
	first_tick = ticks();
	for (; submitted < o.depth && submitted < o.ios; submitted++)
		submit(context, handle, &o, &slots[submitted]);
	while (done < o.ios) {
		long got = syscall(SYS_io_getevents, context, 1L, 64L, events, NULL);
		uint64_t now = ticks();

		if (got < 0 && errno != EINTR)
			fail("io_getevents");
		for (i = 0; i < got; i++) {
			struct slot *slot = (struct slot *)(uintptr_t)events[i].data;

			if (events[i].result != (int64_t)slot->request.bytes) {
				errno = events[i].result < 0 ? (int)-events[i].result : EIO;
				fail(kind_names[slot->kind]);
			}
			latencies[slot->kind][counts[slot->kind]++] = now - slot->started;
			moved += slot->request.bytes;
			done++;
			if (submitted < o.ios) {
				submit(context, handle, &o, slot);
				submitted++;
			}
		}
	}
	all_ticks = ticks() - first_tick;
	cpu = clock_now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	real = clock_now(CLOCK_MONOTONIC) - real;
	getrusage(RUSAGE_SELF, &after);
	syscall(SYS_io_destroy, context);
	tick = real * 1e6 / all_ticks;
	user = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) + (after.ru_utime.tv_usec - before.ru_utime.tv_usec) * 1e-6;
	sys = (after.ru_stime.tv_sec - before.ru_stime.tv_sec) + (after.ru_stime.tv_usec - before.ru_stime.tv_usec) * 1e-6;

	printf("device: %s\n", device);
	printf("ios: %ld of which %ld read, %ld write, %ld log\n", done, counts[READ], counts[WRITE], counts[LOG]);
	printf("real: %.9f s\n", real);
	printf("iops: %.3f 1/s\n", done / real);
	printf("throughput: %.3f MB/s\n", moved / real * 1e-6);
	for (i = 0; i < KINDS; i++)
		print_latencies(i, latencies[i], counts[i], tick);
	printf("cpu_per_io: %.6f us\n", cpu * 1e6 / done);
	printf("user_per_io: %.6f us\n", user * 1e6 / done);
	printf("sys_per_io: %.6f us\n", sys * 1e6 / done);
	printf("ticks_per_io: %.3f ticks\n", (double)all_ticks / done);
	return fflush(stdout) == 0 ? 0 : 1;
}
