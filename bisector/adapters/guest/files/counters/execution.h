/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef EXECUTION_H
#define EXECUTION_H

#include <stdbool.h>
#include <stdint.h>

#include "block_table.h"
#include "branch_model.h"
#include "memory_model.h"
#include "qemu_api.h"

/* What a run has executed beside the instructions of its blocks, and the models that have seen it. */
struct execution {
	struct memory_model model;
	struct predictor predictor;
	uint64_t loads, stores, branches, taken_branches, branch_misses;
	struct block *previous;
};

extern struct execution execution;

void execution_clear(void);

/* Have a block's branches, fetches and accesses counted as the settings say. block: NULL if it is not kept. */
void execution_watch(struct qemu_plugin_tb *tb, struct block *block);

#endif
