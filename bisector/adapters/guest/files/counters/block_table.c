/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "block_table.h"

#include <stdlib.h>
#include <string.h>

enum {
	BLOCKS_MAX = 1 << 20, /* kernels have 300,000; code beyond is counted, but not told apart */
	TABLE_SIZE = 2 * BLOCKS_MAX,
	CHUNK = 4096,
};

/* Linux maps one page there for three functions that programs call (vsyscalls; since 3.1 they trap by default). */
static const uint64_t VSYSCALL_PAGE = 0xffffffffff600000ULL, PAGE = 4096;

static struct block *chunks[BLOCKS_MAX / CHUNK];
static uint32_t *table; /* index + 1 of a block, by the hash of what it is */
static uint32_t blocks;
static bool is_arm;

bool blocks_prepare(bool arm)
{
	is_arm = arm;
	table = calloc(TABLE_SIZE, sizeof(*table));
	return table != NULL;
}

bool is_kernel(uint64_t address)
{
	return address >> 63 != 0 && (is_arm || address - VSYSCALL_PAGE >= PAGE);
}

uint32_t blocks_kept(void)
{
	return blocks;
}

struct block *block_at(uint32_t index)
{
	return &chunks[index / CHUNK][index % CHUNK];
}

static bool is_same(const struct block *a, const struct block *b)
{
	return a->address == b->address && a->code == b->code && a->rest == b->rest && a->bytes == b->bytes &&
	       a->instructions == b->instructions && a->branch == b->branch && a->target == b->target &&
	       a->checksum == b->checksum;
}

struct block *block_keep(const struct block *wanted)
{
	uint64_t hash = (wanted->address ^ wanted->code >> 12 ^ (uint64_t)wanted->bytes << 40 ^ wanted->checksum) * 0x9e3779b97f4a7c15ULL;
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

void blocks_clear(void)
{
	uint32_t i;

	for (i = 0; i < blocks; i++) {
		struct block *block = block_at(i);

		block->executions = block->followed = block->mispredicted = 0;
		memset(block->missed, 0, sizeof(block->missed));
		block->caller = block->callee = 0;
	}
}
