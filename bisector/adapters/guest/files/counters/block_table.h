/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BLOCK_TABLE_H
#define BLOCK_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "branch_decode.h"
#include "memory_model.h"

/* One translated block, kept for good: translated code has its address. */
struct block {
	uint64_t address;
	uint64_t code;      /* host address of its first byte, which stands for the physical one */
	uint64_t rest;      /* the same of its part on a second page, 0: none */
	uint64_t fall_through, target;
	uint32_t instructions, bytes, rest_bytes;
	uint32_t checksum; /* of a program's code in a profile, else 0 (code_checksum.h) */
	enum branch_kind branch;
	uint64_t branch_address;
	uint64_t executions;
	uint64_t missed[LEVELS], mispredicted;
	uint32_t function, target_function; /* of function_table.h */
	uint64_t followed;                  /* executions whose call or return was seen (call_stacks.c) */
	uint32_t caller, callee;            /* the latest path of a direct call, and what it led to (there) */
};

/* Returns false without memory. arm: of two architectures, which one's addresses these are. */
bool blocks_prepare(bool arm);

/* Addresses of the upper half are the kernel's, but for x86's page of vsyscalls, which programs execute. */
bool is_kernel(uint64_t address);

/* The block that is kept for one that is translated (again); NULL where there are too many. */
struct block *block_keep(const struct block *wanted);

uint32_t blocks_kept(void);
struct block *block_at(uint32_t index);
void blocks_clear(void);

#endif
