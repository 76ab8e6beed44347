/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef MEMORY_MODEL_H
#define MEMORY_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Caches and TLBs of one processor: set associative, least recently used goes first, a miss fills every level on its
 * way, writes allocate. No prefetcher, no bandwidth, one access at a time. A level without sets is not there.
 */
struct level {
	unsigned int sets, ways, shift; /* shift: of an address to what one entry holds */
	uint64_t *tags; /* of each set, the most recently used first; 0: empty */
	uint64_t misses;
};

struct memory_model {
	struct level l1i, l1d, l2, ll, itlb, dtlb, stlb;
};

/* What is counted for each block, in the order of its numbers. */
enum level_number { L1I, L1D, L2, LL, ITLB, DTLB, STLB, LEVELS };

/* "SIZE:WAYS:UNIT" in bytes (for a TLB: entries * page size). Returns false for what no cache can be. */
bool level_parse(struct level *level, const char *text);

/* Nothing is cached and nothing was counted. */
void memory_model_clear(struct memory_model *model);

/* virt: what TLBs look at; phys: what caches look at. missed: counts of whoever accesses; each miss of a level adds one. */
void data_access(struct memory_model *model, uint64_t virt, uint64_t phys, unsigned int bytes, uint64_t missed[LEVELS]);
void code_fetch(struct memory_model *model, uint64_t virt, uint64_t phys, unsigned int bytes, uint64_t missed[LEVELS]);

#endif
