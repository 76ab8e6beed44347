/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "call_stacks.h"

#include <stddef.h>

#include "call_tree.h"
#include "function_table.h"
#include "shadow_stack.h"

uint64_t stacks_instructions;

static struct stack *const nowhere = &shadow_stacks[STACKS];
static struct stack *current;
static uint64_t added; /* of stacks_instructions */

void stacks_clear(void)
{
	shadow_stacks_clear();
	current = nowhere;
	stacks_instructions = added = 0;
}

static bool is_on(const struct stack *stack, uint64_t place)
{
	return stack != nowhere && stack->key == place >> STACK_BITS;
}

/* Give what has come since the last event to the frame where the kernel is. */
static void add_up(void)
{
	struct frame *frame = top_of(current);

	frame->pending += stacks_instructions - added;
	added = stacks_instructions;
	if (!frame->unknown)
		give(frame);
}

static uint32_t entered(uint32_t parent, uint32_t function)
{
	uint32_t path = tree_child(parent, function);

	tree_path(path)->calls++;
	return path;
}

/* The path of a function that the one on `path` jumped to: one that it came from, or else a further one. */
static uint32_t jumped(const struct frame *frame, uint32_t path, uint32_t function)
{
	uint32_t at;

	for (at = path; at != frame->parent && at != ROOT; at = tree_path(at)->parent)
		if (tree_path(at)->function == function)
			return at;
	if (path != frame->parent && (function_flags(tree_path(path)->function) & THUNK) != 0)
		path = tree_path(path)->parent;
	return entered(path, function);
}

/* The kernel is in a function now, and has been since the last event. */
static void enter(struct stack *stack, uint32_t function)
{
	struct frame *frame = top_of(stack);

	if (frame->path != frame->parent && tree_path(frame->path)->function == function)
		;
	else if (stack->top == 0 && stack != nowhere) /* the bottom of a stack is no caller of anything */
		frame->path = entered(ROOT, function);
	else
		frame->path = jumped(frame, frame->path, function);
	frame->unknown = false;
	if (frame->pending != 0)
		give(frame);
}

static void add_up_in(uint32_t function)
{
	enter(current, function);
	add_up();
}

static void link_to_current(struct frame *frame)
{
	frame->link = 1 + (current - shadow_stacks);
	frame->link_place = top_of(current)->place;
}

/* Go to where a frame that has ended was called from, or to what it interrupted. */
static void go_back(const struct frame *ended)
{
	if (ended->link == 0) {
		current->frames[0].unknown |= current->top == 0;
		return;
	}
	current = &shadow_stacks[ended->link - 1];
	if (ended->link_place > 0)
		forget(current, ended->link_place - 1);
	if (top_of(current)->place != ended->link_place)
		top_of(current)->unknown = true;
}

/* The next call of an interrupt says where its stack is: the frame moves there. */
static struct stack *place_interrupt(uint64_t place)
{
	struct frame frame = *top_of(current);
	struct stack *stack = stack_of(place);

	current->top--;
	if (stack != current)
		link_to_current(&frame);
	frame.place = place + 1;
	forget(stack, frame.place);
	push(stack, &frame);
	return stack;
}

/*
 * Whether an access is that of the call or return that ends the block: one an execution. QEMU before 8.0 goes on to show
 * accesses of later helpers (of fxsave, say) to a block that has ended with a jump through its address.
 */
static bool is_own(struct block *block)
{
	bool own = block->followed != block->executions;

	block->followed = block->executions;
	return own;
}

static void on_call(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t place, void *data)
{
	struct block *block = data;
	struct frame *caller = top_of(current);
	struct frame called = { .place = place };
	struct stack *stack = current;

	(void)cpu;
	if (!qemu_plugin_mem_is_store(info) || !is_own(block)) /* an indirect call reads its target, too */
		return;
	if (caller->interrupt && caller->place == 0) {
		add_up_in(block->function);
		current = stack = place_interrupt(place);
	} else if (is_on(current, place)) {
		forget(current, place);
		add_up_in(block->function);
	} else {
		stack = stack_of(place);
		if (caller->unknown || tree_path(caller->path)->function == block->function) {
			/* the same function goes on on another stack, as those of interrupts are */
			add_up_in(block->function);
			if (current == nowhere)
				empty(stack, stack->key);
			forget(stack, place);
			if ((function_flags(block->target_function) & SWITCH) == 0)
				link_to_current(&called);
		} else { /* another task's */
			current = stack;
			forget(stack, place);
			add_up_in(block->function);
		}
	}
	called.path = called.parent = top_of(current)->path;
	if (block->target == 0) {
		called.unknown = true;
	} else {
		if (block->caller != called.parent || block->callee == ROOT) {
			block->caller = called.parent;
			block->callee = tree_child(called.parent, block->target_function);
		}
		called.path = block->callee;
		tree_path(called.path)->calls++;
	}
	current = stack;
	push(stack, &called);
}

static void on_return(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t place, void *data)
{
	struct block *block = data;
	struct frame ended;

	(void)cpu;
	if (qemu_plugin_mem_is_store(info) || !is_own(block))
		return;
	add_up_in(block->function);
	if (!is_on(current, place))
		current = stack_of(place);
	forget(current, place - 1);
	give(top_of(current));
	ended = *top_of(current);
	if (current->top > 0 && ended.place == place) {
		current->top--;
		go_back(&ended);
		return;
	}
	if (current->top == 0)
		empty(current, current->key);
	top_of(current)->unknown = true;
}

static void on_interrupt_return(unsigned int cpu, void *data)
{
	struct block *block = data;
	struct frame ended;

	(void)cpu;
	add_up_in(block->function);
	ended = *top_of(current);
	if (!ended.interrupt)
		return; /* a system call's, or one within a function, which serialises */
	current->top--;
	go_back(&ended);
}

static void on_entry(unsigned int cpu, void *data)
{
	struct block *block = data;
	struct frame interrupt = { .parent = ROOT, .interrupt = true };
	struct frame *top = top_of(current);

	(void)cpu;
	/* QEMU adds this block's instructions behind this call: what has come is what was interrupted. */
	if (top->interrupt && top->place == 0) { /* a stub has jumped to what it serves */
		add_up();
		enter(current, block->function);
	} else if ((function_flags(block->function) & SYSCALL) != 0) {
		add_up();
		current = nowhere;
		empty(nowhere, 0);
		enter(nowhere, block->function);
	} else {
		add_up();
		interrupt.path = entered(ROOT, block->function);
		push(current, &interrupt);
	}
}

static void on_leave(unsigned int cpu, void *data)
{
	struct block *block = data;

	(void)cpu;
	add_up_in(block->function);
	top_of(current)->unknown = true;
}

void stacks_finish(void)
{
	add_up();
	shadow_stacks_empty();
}

/* Whether the kernel may be in another function behind a block that neither calls nor returns. */
static bool leaves(const struct block *block)
{
	if (block->branch == JUMP)
		return block->target == 0 || block->target_function != block->function;
	return function_of(block->fall_through, NULL) != block->function ||
	       (block->branch == CONDITIONAL && block->target_function != block->function);
}

void stacks_watch(struct qemu_plugin_tb *tb, struct block *block)
{
	struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, qemu_plugin_tb_n_insns(tb) - 1);
	uint64_t start, target_start = 0;
	uint32_t flags;

	block->function = function_of(block->address, &start);
	block->target_function = block->target != 0 ? function_of(block->target, &target_start) : OUTSIDE;
	flags = function_flags(block->function);
	if ((flags & STUBS) != 0 || ((flags & (ENTRY | SYSCALL)) != 0 && block->address == start))
		qemu_plugin_register_vcpu_tb_exec_cb(tb, on_entry, QEMU_PLUGIN_CB_NO_REGS, block);
	if (block->branch == CALL && block->target_function == block->function && block->target != 0 &&
	    block->target != target_start)
		return; /* within a function: it puts an address on the stack, and never returns to it */
	/* Both kinds of access: QEMU 7.2 leaves wrong ones out of one kind. */
	if (block->branch == CALL)
		qemu_plugin_register_vcpu_mem_cb(last, on_call, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, block);
	else if (block->branch == RETURN)
		qemu_plugin_register_vcpu_mem_cb(last, on_return, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, block);
	else if (block->branch == INTERRUPT_RETURN)
		qemu_plugin_register_vcpu_insn_exec_cb(last, on_interrupt_return, QEMU_PLUGIN_CB_NO_REGS, block);
	else if (leaves(block))
		qemu_plugin_register_vcpu_insn_exec_cb(last, on_leave, QEMU_PLUGIN_CB_NO_REGS, block);
}
