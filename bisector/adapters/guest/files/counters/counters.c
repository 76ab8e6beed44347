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
 *     profile=on         each line also has the kernel's blocks: [address, bytes, instructions, executions, misses...],
 *                        and those of programs: [address, bytes, instructions, executions, checksum, misses...]
 *     functions=FILE, follow=N
 *                        the line of run N also has the kernel's paths of calls (call_stacks.h, function_table.h):
 *                        [number of the path that it was called from, function, instructions, calls]; x86_64 alone
 *     memory=on          loads and stores
 *     predictor=T:H      branches, by a gshare predictor of 2^T counters and H outcomes (branch_model.h)
 *     L1d=, L1i=, L2=, LL=, dTLB=, iTLB=, sTLB=
 *                        a model of caches and TLBs, each 'BYTES:WAYS:UNIT' (memory_model.h)
 *     virtual=on         caches are looked up by virtual addresses, as programs that simulate one process do
 *     check=on           say that QEMU has plugins, and end
 *
 * Instructions alone cost an addition a block. Everything else is on only within its runs: at a marker the plugin
 * resets itself, and QEMU translates all code anew. Further markers say the number of the next run, a bit each, so that a
 * reader knows which run a line is of. Whoever is in the guest may execute the markers: what was written and not yet
 * taken out of the file stays below UNREAD_BYTES_MAX (run_line.c) and one line, and a begin within a run or an end outside of one
 * does nothing. The reader takes lines out under flock().
 *
 * A block that an exception leaves in its middle counts whole. One program alone (QEMU's user mode) is counted with virtual=on.
 */
#include <stdio.h>
#include <string.h>

#include "arguments.h"
#include "block_table.h"
#include "call_stacks.h"
#include "call_tree.h"
#include "code_checksum.h"
#include "execution.h"
#include "qemu_api.h"
#include "run_line.h"
#include "settings.h"

enum {
	MARK_BEGIN = 1,
	MARK_END = 2,
	MARK_NUMBER = 3, /* the next run's number begins, its highest bit first */
	MARK_ZERO = 4,
	MARK_ONE = 5,
};

EXPORTED int qemu_plugin_version = API_VERSION;

static struct more_instructions more;
static bool running, following;
static uint32_t run; /* number of the run that is counted, or of the next one */

static void begin_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
static void count_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);

static void clear_counts(void)
{
	blocks_clear();
	execution_clear();
	more = (struct more_instructions){ 0 };
	if (following) {
		tree_clear();
		stacks_clear();
	}
}

/* --- markers --- */

static bool is_followed(void)
{
	return settings.tree && run == settings.followed;
}

static void start_counting(qemu_plugin_id_t id)
{
	following = is_followed();
	clear_counts();
	qemu_plugin_register_vcpu_tb_trans_cb(id, count_translation);
}

static void stop_counting(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, settings.resets ? begin_translation : count_translation);
}

static void on_marker(unsigned int cpu, void *data)
{
	intptr_t marker = (intptr_t)data;

	(void)cpu;
	if (marker >= MARK_NUMBER && !running) {
		run = marker == MARK_NUMBER ? 0 : run << 1 | (marker == MARK_ONE);
	} else if (marker == MARK_BEGIN && !running) {
		running = true;
		if (settings.resets || is_followed())
			qemu_plugin_reset(settings.id, start_counting);
		else
			clear_counts();
	} else if (marker == MARK_END && running) {
		running = false;
		if (following)
			stacks_finish();
		write_run(run, &more, following);
		following = false;
		if (settings.resets || is_followed())
			qemu_plugin_reset(settings.id, stop_counting);
	}
}

/* x86_64: nopl with the displacement 0x00NN4250; arm64: movz xzr, #0x50NN. NN is the marker's number, else 0. */
static int marker_of(struct qemu_plugin_insn *insn)
{
	const uint8_t *code = qemu_plugin_insn_data(insn);
	uint32_t word;

	if (settings.arm) {
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

/* --- what happens while QEMU translates --- */

static void describe(struct qemu_plugin_tb *tb, struct block *block)
{
	size_t i, count = qemu_plugin_tb_n_insns(tb);
	struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, count - 1);

	memset(block, 0, sizeof(*block));
	block->address = qemu_plugin_tb_vaddr(tb);
	block->instructions = count;
	block->branch_address = qemu_plugin_insn_vaddr(last);
	block->fall_through = block->branch_address + qemu_plugin_insn_size(last);
	if (settings.profile && !is_kernel(block->address))
		block->checksum = code_checksum(tb);
	if (settings.branches || following)
		block->branch = branch_decode(settings.arm, qemu_plugin_insn_data(last), qemu_plugin_insn_size(last),
					      block->branch_address, &block->target);
	if (!settings.caches)
		return;
	block->code = settings.by_virtual ? block->address :
					    (uintptr_t)qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0));
	for (i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t at = settings.by_virtual ? qemu_plugin_insn_vaddr(insn) :
						    (uintptr_t)qemu_plugin_insn_haddr(insn);

		if (block->rest == 0 && at != block->code + block->bytes)
			block->rest = at;
		*(block->rest == 0 ? &block->bytes : &block->rest_bytes) += qemu_plugin_insn_size(insn);
	}
}

/* Count how often a block is executed; returns where it is kept, NULL where there are too many. */
static struct block *count_executions(struct qemu_plugin_tb *tb, bool kernel)
{
	uint64_t count = qemu_plugin_tb_n_insns(tb);
	struct block found, *block;

	describe(tb, &found);
	block = block_keep(&found);
	if (block == NULL)
		qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64,
							 kernel ? &more.kernel : &more.user, count);
	else
		qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &block->executions, 1);
	return block;
}

static void count_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	bool kernel = is_kernel(qemu_plugin_tb_vaddr(tb));
	uint64_t count = qemu_plugin_tb_n_insns(tb);
	struct block *block = NULL;

	(void)id;
	watch_markers(tb);
	if (kernel || settings.profile || settings.branches || settings.caches)
		block = count_executions(tb, kernel);
	else /* nothing tells user code apart */
		qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &more.user, count);
	if (kernel && following) {
		qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &stacks_instructions, count);
		if (block != NULL)
			stacks_watch(tb, block);
	}
	execution_watch(tb, block);
}

static void begin_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	watch_markers(tb);
}

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	bool check = false;
	int i;

	for (i = 0; i < argc; i++)
		if (!argument_take(argv[i], &check)) {
			fprintf(stderr, "perfbisect counters: '%s' is not understood, or its file cannot be opened\n", argv[i]);
			return 1;
		}
	if (check) {
		fprintf(stderr, "perfbisect counters: this QEMU has plugins (%s)\n", info->target_name);
		return 1; /* QEMU ends */
	}
	settings.id = id;
	settings.arm = strcmp(info->target_name, "aarch64") == 0;
	settings.caches = execution.model.l1d.sets != 0 && execution.model.l1i.sets != 0;
	settings.resets = settings.memory || settings.branches || settings.caches;
	if (settings.out == NULL || !blocks_prepare(settings.arm) || (settings.arm && settings.tree) ||
	    !(info->system_emulation || settings.by_virtual) ||
	    (!settings.arm && strcmp(info->target_name, "x86_64") != 0)) {
		fprintf(stderr, "perfbisect counters: no file for the counts, no memory, or not x86_64 or arm64\n");
		return 1;
	}
	write_head(info->target_name);
	qemu_plugin_register_vcpu_tb_trans_cb(id, settings.resets ? begin_translation : count_translation);
	return 0;
}
