/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A plugin of QEMU's code generator that counts what a guest executes between two marker instructions: those of
 * perfbisect's measuring agent at the begin and the end of a run. The guest has no part in it, and its instruction
 * clock does not see it. This file is part of perfbisect; it is under the GPL, version 2 or later, because it runs
 * inside QEMU.
 *
 * Arguments, each 'name=value':
 *
 *     out=FILE           where lines of JSON go, one first line and one for each run; it exists already
 *     profile=on         each line also has the kernel's blocks: [address, instructions, executions, misses...]
 *     memory=on          loads and stores
 *     predictor=T:H      branches, by a gshare predictor of 2^T counters and H outcomes (branch_model.h)
 *     L1d=, L1i=, L2=, LL=, dTLB=, iTLB=, sTLB=
 *                        a model of caches and TLBs, each 'BYTES:WAYS:UNIT' (memory_model.h)
 *     virtual=on         caches are looked up by virtual addresses, as programs that simulate one process do
 *     user=on            the models see user mode only
 *     check=on           say that QEMU has plugins, and end
 *
 * Instructions alone cost an addition a block. Everything else is on only within runs: at a marker the plugin resets
 * itself, and QEMU translates all code anew. Further markers say the number of the next run, a bit each, so that a
 * reader knows which run a line is of. Whoever is in the guest may execute the markers: what was written and not yet
 * taken out of the file stays below UNREAD_BYTES_MAX and one line, and a begin within a run or an end outside of one
 * does nothing. The reader takes lines out under flock().
 *
 * A block that an exception leaves in its middle counts whole. Addresses of the upper half are the kernel's, but for
 * x86's page of vsyscalls, which programs execute. One program alone (QEMU's user mode) is counted with virtual=on.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "branch_model.h"
#include "memory_model.h"
#include "qemu_api.h"

enum {
	BLOCKS_MAX = 1 << 20,       /* kernels have 300,000; code beyond is counted, but not told apart */
	TABLE_SIZE = 2 * BLOCKS_MAX,
	CHUNK = 4096,
	UNREAD_BYTES_MAX = 128 << 20, /* a profile of a run is 0.1 to 2 MB, and each is read after its run */
	MARK_BEGIN = 1,
	MARK_END = 2,
	MARK_NUMBER = 3, /* the next run's number begins, its highest bit first */
	MARK_ZERO = 4,
	MARK_ONE = 5,
};

/* Linux maps one page there for three functions that programs call (vsyscalls; since 3.1 they trap by default). */
static const uint64_t VSYSCALL_PAGE = 0xffffffffff600000ULL, PAGE = 4096;

/* One translated block, kept for good: translated code has its address. */
struct block {
	uint64_t address;
	uint64_t code;      /* host address of its first byte, which stands for the physical one */
	uint64_t rest;      /* the same of its part on a second page, 0: none */
	uint64_t fall_through, target;
	uint32_t instructions, bytes, rest_bytes;
	enum branch_kind branch;
	uint64_t branch_address;
	uint64_t executions;
	uint64_t missed_code, missed_data, missed_memory, mispredicted;
};

static struct {
	bool arm, profile, memory, branches, caches, by_virtual, user_only, resets;
	qemu_plugin_id_t id;
	FILE *out;
} self;

static struct block *chunks[BLOCKS_MAX / CHUNK];
static uint32_t *table; /* index + 1 of a block, by the hash of what it is */
static uint32_t blocks;
static struct block beyond[2]; /* user and kernel code beyond BLOCKS_MAX: executions are instructions here */
static uint64_t user_instructions;

static struct memory_model model;
static struct predictor predictor;
static uint64_t loads, stores, branches, taken_branches, branch_misses;
static struct block *previous;
static bool running;
static uint32_t run; /* number of the run that is counted, or of the next one */

EXPORTED int qemu_plugin_version = API_VERSION;

static void begin_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);

static bool is_kernel(uint64_t address)
{
	return address >> 63 != 0 && (self.arm || address - VSYSCALL_PAGE >= PAGE);
}

static struct block *block_at(uint32_t index)
{
	return &chunks[index / CHUNK][index % CHUNK];
}

static bool is_same(const struct block *a, const struct block *b)
{
	return a->address == b->address && a->code == b->code && a->rest == b->rest && a->bytes == b->bytes &&
	       a->instructions == b->instructions && a->branch == b->branch && a->target == b->target;
}

/* The block that is kept for one that is translated (again); NULL where there are too many. */
static struct block *keep(const struct block *wanted)
{
	uint64_t hash = (wanted->address ^ wanted->code >> 12 ^ (uint64_t)wanted->bytes << 40) * 0x9e3779b97f4a7c15ULL;
	uint32_t slot = hash >> 43 & (TABLE_SIZE - 1);

	for (; table[slot] != 0; slot = (slot + 1) & (TABLE_SIZE - 1))
		if (is_same(block_at(table[slot] - 1), wanted))
			return block_at(table[slot] - 1);
	if (blocks == BLOCKS_MAX)
		return NULL;
	if (blocks % CHUNK == 0 && (chunks[blocks / CHUNK] = calloc(CHUNK, sizeof(struct block))) == NULL)
		return NULL;
	*block_at(blocks) = *wanted;
	table[slot] = ++blocks;
	return block_at(blocks - 1);
}

static void clear_counts(void)
{
	uint32_t i;

	for (i = 0; i < blocks; i++) {
		struct block *block = block_at(i);

		block->executions = block->missed_code = block->missed_data = 0;
		block->missed_memory = block->mispredicted = 0;
	}
	memset(beyond, 0, sizeof(beyond));
	user_instructions = loads = stores = branches = taken_branches = branch_misses = 0;
	memory_model_clear(&model);
	predictor_clear(&predictor);
	previous = NULL;
}

/* --- output --- */

__attribute__((format(printf, 1, 2))) static void print(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(self.out, format, arguments);
	va_end(arguments);
}

static void print_profile(void)
{
	const char *separator = "";
	uint32_t i;

	print(",\"blocks\":[");
	for (i = 0; i < blocks; i++) {
		const struct block *block = block_at(i);

		if (block->executions == 0 || !is_kernel(block->address))
			continue;
		print("%s[%llu,%u,%llu", separator, (unsigned long long)block->address, block->instructions,
		      (unsigned long long)block->executions);
		if (self.caches)
			print(",%llu,%llu,%llu", (unsigned long long)block->missed_code,
			      (unsigned long long)block->missed_data, (unsigned long long)block->missed_memory);
		print("]");
		separator = ",";
	}
	print("]");
}

static void print_run(void)
{
	unsigned long long user = user_instructions + beyond[0].executions, kernel = beyond[1].executions;
	uint32_t i;

	for (i = 0; i < blocks; i++) {
		const struct block *block = block_at(i);

		*(is_kernel(block->address) ? &kernel : &user) += block->executions * block->instructions;
	}
	print("{\"run\":%u,\"user\":%llu,\"kernel\":%llu", run, user, kernel);
	if (self.memory || self.caches)
		print(",\"loads\":%llu,\"stores\":%llu", (unsigned long long)loads, (unsigned long long)stores);
	if (self.branches)
		print(",\"branches\":%llu,\"taken_branches\":%llu,\"branch_misses\":%llu", (unsigned long long)branches,
		      (unsigned long long)taken_branches, (unsigned long long)branch_misses);
	if (self.caches) {
		print(",\"L1i_misses\":%llu,\"L1d_misses\":%llu", (unsigned long long)model.l1i.misses,
		      (unsigned long long)model.l1d.misses);
		print(",\"L2_misses\":%llu,\"LL_misses\":%llu", (unsigned long long)model.l2.misses,
		      (unsigned long long)model.ll.misses);
		print(",\"iTLB_misses\":%llu,\"dTLB_misses\":%llu,\"sTLB_misses\":%llu",
		      (unsigned long long)model.itlb.misses, (unsigned long long)model.dtlb.misses,
		      (unsigned long long)model.stlb.misses);
	}
	if (self.profile)
		print_profile();
	print("}\n");
	fflush(self.out);
}

/* A line that finds too much unread before it is left out: its reader misses the number. */
static void write_run(void)
{
	int file = fileno(self.out);
	struct stat info;

	flock(file, LOCK_EX);
	if (fstat(file, &info) == 0 && info.st_size < UNREAD_BYTES_MAX)
		print_run();
	flock(file, LOCK_UN);
}

/* --- what happens while the guest executes --- */

static void on_block(unsigned int cpu, void *data)
{
	struct block *block = data;

	(void)cpu;
	if (self.branches && previous != NULL) {
		bool fell = block->address == previous->fall_through;

		if (previous->branch == JUMP) {
			taken_branches++;
		} else if (fell || block->address == previous->target) { /* else: an interrupt came in between */
			taken_branches += !fell;
			if (predictor_outcome(&predictor, previous->branch_address, !fell)) {
				branch_misses++;
				previous->mispredicted++;
			}
		}
	}
	previous = NULL;
	if (self.branches && block->branch != NO_BRANCH) {
		branches++;
		previous = block;
	}
	if (self.caches) {
		unsigned int missed = code_fetch(&model, block->address, block->code, block->bytes);

		if (block->rest != 0)
			missed |= code_fetch(&model, block->address + block->bytes, block->rest, block->rest_bytes);
		block->missed_code += (missed & MISSED_L1) != 0;
		block->missed_memory += (missed & MISSED_LL) != 0;
	}
}

static void on_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	struct qemu_plugin_hwaddr *place = qemu_plugin_get_hwaddr(info, address);
	uint64_t physical = address;
	struct block *block = data;
	unsigned int missed;

	(void)cpu;
	if (qemu_plugin_mem_is_store(info))
		stores++;
	else
		loads++;
	if (!self.by_virtual) {
		if (place == NULL || qemu_plugin_hwaddr_is_io(place))
			return;
		physical = qemu_plugin_hwaddr_phys_addr(place);
	}
	missed = data_access(&model, address, physical, 1U << qemu_plugin_mem_size_shift(info));
	block->missed_data += (missed & MISSED_L1) != 0;
	block->missed_memory += (missed & MISSED_LL) != 0;
}

/* Not inline: QEMU 7.2 takes the kinds of inline additions, load and store, for each other. */
static void on_plain_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	(void)cpu, (void)address, (void)data;
	if (qemu_plugin_mem_is_store(info))
		stores++;
	else
		loads++;
}

static void count_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);

static void start_counting(qemu_plugin_id_t id)
{
	clear_counts();
	qemu_plugin_register_vcpu_tb_trans_cb(id, count_translation);
}

static void stop_counting(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, begin_translation);
}

static void on_marker(unsigned int cpu, void *data)
{
	intptr_t marker = (intptr_t)data;

	(void)cpu;
	if (marker >= MARK_NUMBER && !running) {
		run = marker == MARK_NUMBER ? 0 : run << 1 | (marker == MARK_ONE);
	} else if (marker == MARK_BEGIN && !running) {
		running = true;
		if (self.resets)
			qemu_plugin_reset(self.id, start_counting);
		else
			clear_counts();
	} else if (marker == MARK_END && running) {
		running = false;
		write_run();
		if (self.resets)
			qemu_plugin_reset(self.id, stop_counting);
	}
}

/* --- what happens while QEMU translates --- */

/* x86_64: nopl with the displacement 0x00NN4250; arm64: movz xzr, #0x50NN. NN is the marker's number, else 0. */
static int marker_of(struct qemu_plugin_insn *insn)
{
	const uint8_t *code = qemu_plugin_insn_data(insn);
	uint32_t word;

	if (self.arm) {
		if (qemu_plugin_insn_size(insn) != sizeof(word))
			return 0;
		memcpy(&word, code, sizeof(word));
		return (word & 0xffffe01f) == (0xd280001f | 0x5000 << 5) ? word >> 5 & 0xff : 0;
	}
	if (qemu_plugin_insn_size(insn) != 7 || memcmp(code, "\x0f\x1f\x80\x50\x42", 5) != 0 || code[6] != 0)
		return 0;
	return code[5];
}

static void watch_markers(struct qemu_plugin_tb *tb)
{
	size_t i, count = qemu_plugin_tb_n_insns(tb);

	for (i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		intptr_t marker = marker_of(insn);

		if (marker >= MARK_BEGIN && marker <= MARK_ONE)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_marker, QEMU_PLUGIN_CB_NO_REGS, (void *)marker);
	}
}

static void describe(struct qemu_plugin_tb *tb, struct block *block)
{
	size_t i, count = qemu_plugin_tb_n_insns(tb);
	struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, count - 1);

	memset(block, 0, sizeof(*block));
	block->address = qemu_plugin_tb_vaddr(tb);
	block->instructions = count;
	block->branch_address = qemu_plugin_insn_vaddr(last);
	block->fall_through = block->branch_address + qemu_plugin_insn_size(last);
	if (self.branches)
		block->branch = branch_decode(self.arm, qemu_plugin_insn_data(last), qemu_plugin_insn_size(last),
					      block->branch_address, &block->target);
	if (!self.caches)
		return;
	block->code = self.by_virtual ? block->address : (uintptr_t)qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0));
	for (i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t at = self.by_virtual ? qemu_plugin_insn_vaddr(insn) : (uintptr_t)qemu_plugin_insn_haddr(insn);

		if (block->rest == 0 && at != block->code + block->bytes)
			block->rest = at;
		*(block->rest == 0 ? &block->bytes : &block->rest_bytes) += qemu_plugin_insn_size(insn);
	}
}

static void count_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	bool kernel = is_kernel(qemu_plugin_tb_vaddr(tb)), watched = !(self.user_only && kernel);
	struct block found, *block;
	size_t i, count = qemu_plugin_tb_n_insns(tb);

	(void)id;
	watch_markers(tb);
	if (!kernel && !self.branches && !self.caches) { /* nothing tells user code apart */
		qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &user_instructions, count);
	} else {
		describe(tb, &found);
		block = keep(&found);
		if (block == NULL) {
			block = &beyond[kernel];
			qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &block->executions, count);
		} else {
			qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &block->executions, 1);
			if (watched && (self.branches || self.caches))
				qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, block);
		}
		if (self.caches)
			for (i = 0; watched && i < count; i++)
				qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), on_access,
								 QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, block);
	}
	if (self.memory && !self.caches)
		for (i = 0; watched && i < count; i++)
			qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), on_plain_access,
							 QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
}

static void begin_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	watch_markers(tb);
}

/* --- arguments --- */

static bool is_on(const char *argument, const char *name, bool *value)
{
	size_t length = strlen(name);

	if (strncmp(argument, name, length) != 0 || strcmp(argument + length, "=on") != 0)
		return false;
	*value = true;
	return true;
}

static bool is_level(const char *argument, const char *name, struct level *level, bool *wrong)
{
	size_t length = strlen(name);

	if (strncmp(argument, name, length) != 0 || argument[length] != '=')
		return false;
	*wrong = !level_parse(level, argument + length + 1);
	return true;
}

static bool take(const char *argument, bool *check)
{
	bool wrong = false;

	if (strncmp(argument, "out=", 4) == 0) {
		int fd = open(argument + 4, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);

		self.out = fd >= 0 ? fdopen(fd, "a") : NULL;
		return self.out != NULL;
	}
	if (strncmp(argument, "predictor=", 10) == 0) {
		self.branches = true;
		return predictor_parse(&predictor, argument + 10);
	}
	if (is_on(argument, "profile", &self.profile) || is_on(argument, "memory", &self.memory) ||
	    is_on(argument, "virtual", &self.by_virtual) || is_on(argument, "user", &self.user_only) ||
	    is_on(argument, "check", check))
		return true;
	if (is_level(argument, "L1d", &model.l1d, &wrong) || is_level(argument, "L1i", &model.l1i, &wrong) ||
	    is_level(argument, "L2", &model.l2, &wrong) || is_level(argument, "LL", &model.ll, &wrong) ||
	    is_level(argument, "dTLB", &model.dtlb, &wrong) || is_level(argument, "iTLB", &model.itlb, &wrong) ||
	    is_level(argument, "sTLB", &model.stlb, &wrong))
		return !wrong;
	return false;
}

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	bool check = false;
	int i;

	for (i = 0; i < argc; i++)
		if (!take(argv[i], &check)) {
			fprintf(stderr, "perfbisect counters: '%s' is not understood, or its file cannot be opened\n", argv[i]);
			return 1;
		}
	if (check) {
		fprintf(stderr, "perfbisect counters: this QEMU has plugins (%s)\n", info->target_name);
		return 1; /* QEMU ends */
	}
	self.id = id;
	self.arm = strcmp(info->target_name, "aarch64") == 0;
	self.caches = model.l1d.sets != 0 && model.l1i.sets != 0;
	self.resets = self.memory || self.branches || self.caches;
	table = calloc(TABLE_SIZE, sizeof(*table));
	if (self.out == NULL || table == NULL || !(info->system_emulation || self.by_virtual) ||
	    (!self.arm && strcmp(info->target_name, "x86_64") != 0)) {
		fprintf(stderr, "perfbisect counters: no file for the counts, no memory, or not x86_64 or arm64\n");
		return 1;
	}
	print("{\"counters\":1,\"target\":\"%s\"}\n", info->target_name);
	fflush(self.out);
	qemu_plugin_register_vcpu_tb_trans_cb(id, self.resets ? begin_translation : count_translation);
	return 0;
}
