/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shadow_stack.h"

#include "call_tree.h"

struct stack shadow_stacks[STACKS + 1];

void give(struct frame *frame)
{
	tree_path(frame->path)->instructions += frame->pending;
	frame->pending = 0;
}

void forget(struct stack *stack, uint64_t place)
{
	while (stack->top > 0 && top_of(stack)->place <= place) {
		give(top_of(stack));
		stack->top--;
	}
}

static void begin(struct stack *stack, uint64_t key)
{
	stack->key = key;
	stack->top = 0;
	stack->frames[0] = (struct frame){ .path = ROOT, .parent = ROOT, .unknown = true };
}

void empty(struct stack *stack, uint64_t key)
{
	forget(stack, UINT64_MAX);
	give(top_of(stack));
	begin(stack, key);
}

struct stack *stack_of(uint64_t place)
{
	uint64_t key = place >> STACK_BITS;
	struct stack *stack = &shadow_stacks[key * 0x9e3779b97f4a7c15ULL >> 54 & (STACKS - 1)];

	if (stack->key != key)
		empty(stack, key);
	return stack;
}

void push(struct stack *stack, const struct frame *frame)
{
	if (stack->top < FRAMES_MAX)
		stack->frames[++stack->top] = *frame;
}

void shadow_stacks_clear(void)
{
	uint32_t i;

	for (i = 0; i <= STACKS; i++)
		begin(&shadow_stacks[i], 0);
}

void shadow_stacks_empty(void)
{
	uint32_t i;

	for (i = 0; i <= STACKS; i++)
		empty(&shadow_stacks[i], 0);
}
