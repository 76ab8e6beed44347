/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRANCH_DECODE_H
#define BRANCH_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum branch_kind {
	NO_BRANCH,
	CONDITIONAL,
	JUMP,
	CALL,
	RETURN,
	INTERRUPT_RETURN, /* x86's iret: no branch to a predictor */
};

/* What an instruction at `address` does to the flow. target: of a direct branch, else 0. */
enum branch_kind branch_decode(bool arm, const uint8_t *code, size_t size, uint64_t address, uint64_t *target);

#endif
