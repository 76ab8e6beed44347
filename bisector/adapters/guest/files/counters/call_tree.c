/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "call_tree.h"

#include <stdlib.h>
#include <string.h>

#include "function_table.h"

enum {
	PATHS_MAX = 1 << 16, /* pipe-test has some thousand */
	TABLE_SIZE = 4 * PATHS_MAX,
	DEPTH_MAX = 64, /* a system call that sleeps has 20, the block layer below a file system 40 */
	REST = 1,       /* the path of all that does not fit */
};

static struct path *paths;
static uint32_t *table; /* index of a path, 0: none, by the hash of its parent and function */
static uint32_t size;

bool tree_prepare(void)
{
	paths = calloc(PATHS_MAX, sizeof(*paths));
	table = calloc(TABLE_SIZE, sizeof(*table));
	return paths != NULL && table != NULL;
}

void tree_clear(void)
{
	memset(table, 0, TABLE_SIZE * sizeof(*table));
	memset(paths, 0, 2 * sizeof(*paths));
	paths[REST].function = MORE_PATHS;
	paths[REST].depth = 1;
	size = 2;
}

struct path *tree_path(uint32_t index)
{
	return &paths[index];
}

uint32_t tree_size(void)
{
	return size;
}

uint32_t tree_child(uint32_t parent, uint32_t function)
{
	uint32_t slot;

	if (parent == REST || paths[parent].function == DEEPER)
		return parent;
	if (paths[parent].depth == DEPTH_MAX)
		function = DEEPER;
	slot = (parent * 0x9e3779b97f4a7c15ULL + function) * 0x9e3779b97f4a7c15ULL >> 46 & (TABLE_SIZE - 1);
	for (; table[slot] != 0; slot = (slot + 1) & (TABLE_SIZE - 1))
		if (paths[table[slot]].parent == parent && paths[table[slot]].function == function)
			return table[slot];
	if (size == PATHS_MAX)
		return REST;
	paths[size] = (struct path){ .parent = parent, .function = function, .depth = paths[parent].depth + 1 };
	return table[slot] = size++;
}
