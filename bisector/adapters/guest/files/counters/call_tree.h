/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef CALL_TREE_H
#define CALL_TREE_H

#include <stdbool.h>
#include <stdint.h>

enum { ROOT = 0 };

/* One call path: a function, and the path that it was called from. */
struct path {
	uint32_t parent, function, depth;
	uint64_t instructions, calls;
};

/* Returns false without memory. */
bool tree_prepare(void);
void tree_clear(void);

/* The path of a function that is called from `parent`, and where it does not fit the one that stands for it. */
uint32_t tree_child(uint32_t parent, uint32_t function);

struct path *tree_path(uint32_t index);
uint32_t tree_size(void);

#endif
