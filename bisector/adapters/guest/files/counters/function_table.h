/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FUNCTION_TABLE_H
#define FUNCTION_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers of functions that are none; those of the file begin behind them. */
enum { OUTSIDE, MORE_PATHS, DEEPER, FIRST_FUNCTION };

/* What the file says of a function (bisector/linux/kernel_entries.py). */
enum {
	ENTRY = 1,  /* interrupts and faults begin at its first instruction */
	STUBS = 2,  /* the same at each of its blocks: a table of stubs */
	SYSCALL = 4,
	THUNK = 8,  /* executes an indirect call or jump for its caller */
	SWITCH = 16 /* is called when the stack has just become another task's */
};

/*
 * The functions of a kernel, from a file of records of 16 bytes in the host's byte order, by rising addresses: where a
 * function begins (8 bytes), its number (4) and its flags (4). Several places may have one number.
 */
bool functions_read(const char *path);

/* The number of the function that an address lies in. start: where that part of it begins; may be NULL. */
uint32_t function_of(uint64_t address, uint64_t *start);

uint32_t function_flags(uint32_t function);

#endif
