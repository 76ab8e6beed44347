/*
 * A program without a kernel, for QEMU's -kernel: it does PATTERN between the two markers and ends QEMU (x86_64:
 * multiboot, and the device isa-debug-exit; arm64: semihosting's SYS_EXIT).
 * Addresses are physical ones, so what a model of caches must say follows from arithmetic. Before the run it says the
 * run's number, 5.
 */
#if defined(__aarch64__)
#define MARK(number) __asm__ volatile("movz xzr, #(0x5000 | " #number ")" ::: "memory")
__asm__(".text\n.globl _start\n_start: ldr x0, =stack_end\nmov sp, x0\nbl main\nmov w0, #0x18\nldr x1, =how\nhlt #0xf000\n"
	".data\n.align 3\nhow: .quad 0x20026, 0\n.bss\n.align 4\n.space 4096\nstack_end:\n.text\n");
#else
#define MARK(number) __asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x50, 0x42, " #number ", 0" ::: "memory")
__asm__(".text\n.align 4\n.long 0x1badb002, 0, -0x1badb002\n"
	".globl _start\n_start: mov $stack_end, %esp\ncall main\nmov $0x501, %dx\nout %eax, %dx\nhlt\n"
	".bss\n.align 16\n.space 4096\nstack_end:\n");
#endif

static volatile unsigned char memory[BYTES] __attribute__((aligned(4096)));
static volatile unsigned int sink;

static void stream(void) /* every STRIDE-th byte, PASSES times */
{
	for (unsigned int pass = 0; pass < PASSES; pass++)
		for (unsigned int at = 0; at < BYTES; at += STRIDE)
			(void)memory[at];
}

static void store(void)
{
	for (unsigned int pass = 0; pass < PASSES; pass++)
		for (unsigned int at = 0; at < BYTES; at += STRIDE)
			memory[at] = 1;
}

static void chase(void) /* one pointer after another, PASSES times around a ring that visits each line once */
{
	volatile unsigned int *ring = (volatile unsigned int *)memory;
	unsigned int lines = BYTES / STRIDE, at = 0;

	for (unsigned int step = 0; step < PASSES * lines; step++)
		at = ring[at];
	sink = at;
}

static void prepare_chase(void) /* a ring with a step that is odd, so prime to the number of lines, a power of two */
{
	volatile unsigned int *ring = (volatile unsigned int *)memory;
	unsigned int lines = BYTES / STRIDE, words = STRIDE / sizeof(*ring), step = (lines / 2 + lines / 8) | 1;

	for (unsigned int line = 0; line < lines; line++)
		ring[line * words] = (line + step) % lines * words;
}

static void code(void) /* a jump in every STRIDE-th byte, PASSES times */
{
	for (unsigned int pass = 0; pass < PASSES; pass++)
		((void (*)(void))memory)();
}

static void prepare_code(void) /* jumps, each to the next one, and a return */
{
	for (unsigned int at = 0; at < BYTES; at += STRIDE) {
		volatile unsigned int *words = (volatile unsigned int *)(memory + at);
		int last = at + STRIDE >= BYTES;

#if defined(__aarch64__)
		words[0] = last ? 0xd65f03c0 : 0x14000000 | STRIDE / 4;
#else
		words[0] = last ? 0xc3 : 0xe9 | (STRIDE - 5) << 8;
		words[1] = 0;
#endif
	}
}

static void branch(void) /* PASSES decisions: always the same, every other time, or by chance */
{
	unsigned int chance = 1, taken = 0;

	for (unsigned int pass = 0; pass < PASSES; pass++) {
		unsigned int way;

		chance = chance * 1664525 + 1013904223; /* Numerical Recipes; its upper bits are good */
		way = STRIDE == 1 ? 1 : STRIDE == 2 ? pass & 1 : chance >> 31;
#if defined(__aarch64__)
		__asm__ volatile("cbz %w1, 1f\n\tadd %w0, %w0, #1\n1:" : "+r"(taken) : "r"(way));
#else
		__asm__ volatile("test %1, %1\n\tjz 1f\n\tinc %0\n1:" : "+r"(taken) : "r"(way) : "cc");
#endif
	}
	sink = taken;
}

int main(void)
{
	(void)stream, (void)store, (void)chase, (void)branch, (void)code;
	if (PATTERN == code)
		prepare_code();
	else
		prepare_chase();
	MARK(3); /* the number 5, bit by bit */
	MARK(5);
	MARK(4);
	MARK(5);
	MARK(1);
	PATTERN();
	MARK(2);
	MARK(2); /* an end outside of a run does nothing */
	return 0;
}
