/*
 * A static program for QEMU's user mode and for cachegrind: it does PATTERN between the two markers, on memory of its own
 * at fixed addresses. Both see the same virtual addresses.
 */
#define MARK(number) __asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x50, 0x42, " #number ", 0" ::: "memory")

enum { WORDS = BYTES / 4 };

static unsigned int memory[WORDS] __attribute__((aligned(4096)));
static volatile unsigned int sink;

static unsigned int next(void) /* Numerical Recipes; the upper bits are good */
{
	static unsigned int state = 1;

	state = state * 1664525 + 1013904223;
	return state >> 8;
}

static void scatter(void) /* reads and writes here and there, as a hash table does */
{
	for (int step = 0; step < 1000000; step++)
		memory[next() % WORDS] += step;
}

static void sort(void) /* a heap sort: neither a stream nor chance */
{
	for (int i = 0; i < WORDS; i++)
		memory[i] = next();
	for (int start = WORDS / 2, end = WORDS; end > 1;) {
		unsigned int moved;
		int root, child;

		if (start > 0) {
			moved = memory[--start];
		} else {
			moved = memory[--end];
			memory[end] = memory[0];
		}
		for (root = start; (child = 2 * root + 1) < end; root = child) {
			if (child + 1 < end && memory[child + 1] > memory[child])
				child++;
			if (memory[child] <= moved)
				break;
			memory[root] = memory[child];
		}
		memory[root] = moved;
	}
}

static void multiply(void) /* matrices, the second one down its columns */
{
	enum { SIDE = 160 };
	unsigned int *a = memory, *b = a + SIDE * SIDE, *c = b + SIDE * SIDE;

	for (int i = 0; i < SIDE; i++)
		for (int j = 0; j < SIDE; j++) {
			unsigned int sum = 0;

			for (int k = 0; k < SIDE; k++)
				sum += a[i * SIDE + k] * b[k * SIDE + j];
			c[i * SIDE + j] = sum;
		}
}

static void nothing(void)
{
}

static void straddle(void) /* every other access lies across two lines */
{
	volatile unsigned char *bytes = (volatile unsigned char *)memory;

	for (int pass = 0; pass < 4; pass++)
		for (unsigned int at = 0; at + 72 < BYTES; at += 32)
			sink = *(volatile unsigned long *)(bytes + at + 60);
}

int main(void)
{
	(void)scatter, (void)sort, (void)multiply, (void)straddle, (void)nothing;
	MARK(3);
	MARK(5);
	MARK(1);
	PATTERN();
	MARK(2);
	return sink == 1;
}
