/* Small programs whose time differs from one start to the next. Each repeats one piece of work and prints, for
 * every repetition, its wall clock and its processor time in nanoseconds.
 *
 *     programs NAME REPETITIONS
 *
 * Between starts the kernel chooses other addresses and other physical pages; within one they stay.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t state = 88172645463325252ULL;
static volatile uint64_t sink;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static long long now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Pages are given one by one, as they are touched. */
static void *fresh(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		exit(2);
	memset(p, 1, bytes);
	return p;
}

/* chase: follow pointers through 1 MB, about the second-level cache: which physical pages collide differs. */
enum { SLOTS = 1 << 14 };
static struct slot { struct slot *next; char rest[56]; } *ring;

static void chase_begin(void)
{
	static uint32_t order[SLOTS];
	ring = fresh(sizeof(struct slot) * SLOTS);
	for (uint32_t i = 0; i < SLOTS; i++)
		order[i] = i;
	for (uint32_t i = SLOTS - 1; i; i--) {
		uint32_t j = next_random() % (i + 1), kept = order[i];
		order[i] = order[j];
		order[j] = kept;
	}
	for (uint32_t i = 0; i < SLOTS; i++)
		ring[order[i]].next = &ring[order[(i + 1) % SLOTS]];
}

static void chase(void)
{
	struct slot *at = ring;
	for (int i = 0; i < 400000; i++)
		at = at->next;
	sink = (uintptr_t)at;
}

/* copy: copy 2 MB to and fro. */
static char *one, *other;
enum { COPIED = 2 << 20 };

static void copy_begin(void)
{
	one = fresh(COPIED);
	other = fresh(COPIED);
}

static void copy(void)
{
	for (int i = 0; i < 60; i++) {
		memcpy(other, one, COPIED);
		memcpy(one, other, COPIED);
	}
	sink = one[7];
}

/* table: look up random keys in a hash table of 4 MB. */
enum { BUCKETS = 1 << 19 };
static uint64_t *bucket;

static void table_begin(void)
{
	bucket = fresh(sizeof(uint64_t) * BUCKETS);
	for (int i = 0; i < BUCKETS; i++)
		bucket[i] = next_random();
}

static void table(void)
{
	uint64_t sum = 0;
	for (int i = 0; i < 50000; i++)
		sum += bucket[(next_random() + (sum & 1)) % BUCKETS];
	sink = sum;
}

/* malloc: allocate and free blocks of mixed sizes. */
static void *block[4096];

static void nothing(void) {}

static void allocate(void)
{
	for (int i = 0; i < 70000; i++) {
		uint64_t r = next_random();
		void **at = &block[r % 4096];
		free(*at);
		*at = malloc(16 + (r >> 32) % 2000);
		*(char *)*at = 1;
	}
}

/* sort: sort 60,000 numbers. */
static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static uint64_t *number;
enum { NUMBERS = 60000 };

static void sort_begin(void) { number = fresh(sizeof(uint64_t) * NUMBERS); }

static void sort(void)
{
	state = 42;
	for (int i = 0; i < NUMBERS; i++)
		number[i] = next_random();
	qsort(number, NUMBERS, sizeof(uint64_t), compare);
}

/* pipe: pass a byte to and fro between two processes. */
static int to[2], from[2];

static void pipe_begin(void)
{
	if (pipe(to) || pipe(from))
		exit(2);
	if (!fork()) {
		char c;
		close(to[1]);
		close(from[0]);
		while (read(to[0], &c, 1) == 1)
			if (write(from[1], &c, 1) != 1)
				break;
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
}

static void ping(void)
{
	char c = 0;
	for (int i = 0; i < 600; i++)
		if (write(to[1], &c, 1) != 1 || read(from[0], &c, 1) != 1)
			exit(2);
}

/* lock: two threads take one lock in turn. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long shared;

static void *worker(void *unused)
{
	for (int i = 0; i < 400000; i++) {
		pthread_mutex_lock(&mutex);
		shared++;
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

static void lock(void)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, worker, NULL))
		exit(2);
	worker(NULL);
	pthread_join(thread, NULL);
}

/* fork: start and await children. */
static void forks(void)
{
	for (int i = 0; i < 60; i++) {
		pid_t child = fork();
		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
	}
}

static const struct { const char *name; void (*begin)(void), (*work)(void); } programs[] = {
	{"chase", chase_begin, chase}, {"copy", copy_begin, copy}, {"table", table_begin, table},
	{"malloc", nothing, allocate}, {"sort", sort_begin, sort}, {"pipe", pipe_begin, ping}, {"lock", nothing, lock}, {"fork", nothing, forks},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 3 && i < sizeof programs / sizeof *programs; i++) {
		if (strcmp(argv[1], programs[i].name))
			continue;
		programs[i].begin();
		programs[i].work();
		for (int left = atoi(argv[2]); left > 0; left--) {
			long long wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
			programs[i].work();
			cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
			printf("%lld %lld\n", now(CLOCK_MONOTONIC) - wall, cpu);
		}
		return 0;
	}
	return 2;
}
