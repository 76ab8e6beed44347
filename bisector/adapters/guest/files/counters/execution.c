/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "execution.h"

#include <stddef.h>

#include "settings.h"

struct execution execution;

static struct block no_block; /* stands for one that is not kept; nobody reads it */

void execution_clear(void)
{
	execution.loads = execution.stores = 0;
	execution.branches = execution.taken_branches = execution.branch_misses = 0;
	memory_model_clear(&execution.model);
	predictor_clear(&execution.predictor);
	execution.previous = NULL;
}

/* Count how the latest branch has ended, now that the block behind it is known. */
static void count_branch(const struct block *block)
{
	struct block *branch = execution.previous;
	bool fell = block->address == branch->fall_through;

	if (branch->branch != CONDITIONAL) {
		execution.taken_branches++;
	} else if (fell || block->address == branch->target) { /* else: an interrupt came in between */
		execution.taken_branches += !fell;
		if (predictor_outcome(&execution.predictor, branch->branch_address, !fell)) {
			execution.branch_misses++;
			branch->mispredicted++;
		}
	}
}

static void on_block(unsigned int cpu, void *data)
{
	struct block *block = data;

	(void)cpu;
	if (execution.previous != NULL)
		count_branch(block);
	execution.previous = NULL;
	if (settings.branches && block->branch != NO_BRANCH && block->branch != INTERRUPT_RETURN) {
		execution.branches++;
		execution.previous = block;
	}
	if (settings.caches) {
		code_fetch(&execution.model, block->address, block->code, block->bytes, block->missed);
		if (block->rest != 0)
			code_fetch(&execution.model, block->address + block->bytes, block->rest, block->rest_bytes,
				   block->missed);
	}
}

static void on_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	struct qemu_plugin_hwaddr *place = qemu_plugin_get_hwaddr(info, address);
	uint64_t physical = address;
	struct block *block = data != NULL ? data : &no_block;

	(void)cpu;
	if (qemu_plugin_mem_is_store(info))
		execution.stores++;
	else
		execution.loads++;
	if (!settings.by_virtual) {
		if (place == NULL || qemu_plugin_hwaddr_is_io(place))
			return;
		physical = qemu_plugin_hwaddr_phys_addr(place);
	}
	data_access(&execution.model, address, physical, 1U << qemu_plugin_mem_size_shift(info), block->missed);
}

/* Not inline: QEMU 7.2 takes the kinds of inline additions, load and store, for each other. */
static void on_plain_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	(void)cpu, (void)address, (void)data;
	if (qemu_plugin_mem_is_store(info))
		execution.stores++;
	else
		execution.loads++;
}

void execution_watch(struct qemu_plugin_tb *tb, struct block *block)
{
	qemu_plugin_vcpu_mem_cb_t on_memory = settings.caches ? on_access : on_plain_access;
	size_t i, count = qemu_plugin_tb_n_insns(tb);

	if (block != NULL && (settings.branches || settings.caches))
		qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, block);
	for (i = 0; (settings.caches || settings.memory) && i < count; i++)
		qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), on_memory, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, block);
}
