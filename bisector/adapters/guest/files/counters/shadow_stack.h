/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SHADOW_STACK_H
#define SHADOW_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A shadow stack for each stack of the kernel: the functions that were called on it, by the places of their return
 * addresses. What is forgotten gives its instructions to its path of calls (call_tree.h) first.
 */
enum {
	STACK_BITS = 13, /* 8 KiB: the stack of a task until 3.14; a larger one is several, linked by their calls */
	STACKS = 1024,   /* of one hash, the latest is kept: the paths of the other one begin anew */
	FRAMES_MAX = 250,
};

/* A function that was called, or an interrupt. The frame at the bottom of a stack is whatever is below it all. */
struct frame {
	uint64_t place;   /* of its return address; of an interrupt: just above its first call, 0 before that */
	uint64_t pending; /* instructions, while the function is not known */
	uint64_t link_place;
	uint32_t path, parent; /* the path that it is on, and that it was called from */
	uint16_t link;         /* 1 + the stack that it was called from, with the frame at link_place on its top; 0: this one */
	bool interrupt, unknown;
};

struct stack {
	uint64_t key;
	uint32_t top;
	struct frame frames[FRAMES_MAX + 1];
};

extern struct stack shadow_stacks[STACKS + 1]; /* the last one stands for no stack: a system call before its first call */

static inline struct frame *top_of(struct stack *stack)
{
	return &stack->frames[stack->top];
}

/* Begin all stacks anew, and give nothing. */
void shadow_stacks_clear(void);

/* Empty all stacks. */
void shadow_stacks_empty(void);

/* The stack that a place in memory lies on, emptied if another one was kept there. */
struct stack *stack_of(uint64_t place);

/* Give a frame's pending instructions to its path. */
void give(struct frame *frame);

/* Forget the frames of a stack whose return address lies at most there. */
void forget(struct stack *stack, uint64_t place);

/* Forget all frames, and begin anew. */
void empty(struct stack *stack, uint64_t key);

/* Add a copy of a frame, if there is room: else what is called looks like a part of its caller. */
void push(struct stack *stack, const struct frame *frame);

#endif
