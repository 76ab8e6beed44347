/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef CALL_STACKS_H
#define CALL_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "block_table.h"
#include "qemu_api.h"

/*
 * Which path of calls the kernel of an x86_64 guest is on (call_tree.h), instruction by instruction.
 *
 * The plugin interface shows no registers, but what a call writes and a return reads has an address: the stack
 * pointer. So there is a shadow stack for each stack of the kernel, and each of its frames knows where its return address
 * lies. A return takes the frame of its place away and all below it; whatever left functions otherwise (longjmp, a task
 * that ended) is thereby forgotten at the next call or return above it. A return on another stack is a switch to its task.
 *
 * Instructions are added up by QEMU itself, in `stacks_instructions`; at each call, return, or jump out of a function,
 * what has come since the last one belongs to the function that the instruction lies in. Interrupts and faults are known
 * by the functions that they begin in, and begin a tree of their own.
 *
 * What it cannot tell: who called what a task was in when the run began, until that returns (its path begins there),
 * and modules, which are all one function.
 */
extern uint64_t stacks_instructions;

void stacks_clear(void);

/* Watch the calls and returns of a block of the kernel. block: has its functions. */
void stacks_watch(struct qemu_plugin_tb *tb, struct block *block);

/* Add up what has come since the last call. */
void stacks_finish(void);

#endif
