/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "branch_decode.h"

#include <string.h>

static uint64_t relative(const uint8_t *code, uint64_t next)
{
	int32_t offset;

	memcpy(&offset, code, sizeof(offset));
	return next + (int64_t)offset;
}

static enum branch_kind decode_x86(const uint8_t *code, size_t size, uint64_t address, uint64_t *target)
{
	uint64_t next = address + size;
	size_t at = 0;
	uint8_t operation;

	/* prefixes: segments and hints, operand and address size, lock and rep, REX */
	while (at < size && (code[at] == 0x26 || code[at] == 0x2e || code[at] == 0x36 || code[at] == 0x3e ||
			     (code[at] >= 0x64 && code[at] <= 0x67) || code[at] == 0xf0 || code[at] == 0xf2 ||
			     code[at] == 0xf3 || (code[at] & 0xf0) == 0x40))
		at++;
	if (at + 1 > size)
		return NO_BRANCH;
	operation = code[at];
	if (((operation & 0xf0) == 0x70 || (operation >= 0xe0 && operation <= 0xe3)) && at + 2 == size) {
		*target = next + (int8_t)code[at + 1];
		return CONDITIONAL;
	}
	if (operation == 0x0f && at + 6 == size && (code[at + 1] & 0xf0) == 0x80) {
		*target = relative(code + at + 2, next);
		return CONDITIONAL;
	}
	if (operation == 0xeb && at + 2 == size) {
		*target = next + (int8_t)code[at + 1];
		return JUMP;
	}
	if ((operation == 0xe8 || operation == 0xe9) && at + 5 == size) {
		*target = relative(code + at + 1, next);
		return operation == 0xe8 ? CALL : JUMP;
	}
	if (operation == 0xc3 || operation == 0xc2)
		return RETURN;
	if (operation == 0xcf)
		return INTERRUPT_RETURN;
	if (operation == 0xff && at + 1 < size && (code[at + 1] >> 3 & 7) == 2)
		return CALL;
	if (operation == 0xff && at + 1 < size && (code[at + 1] >> 3 & 7) == 4)
		return JUMP;
	return NO_BRANCH;
}

static enum branch_kind decode_arm(const uint8_t *code, uint64_t address, uint64_t *target)
{
	uint32_t word;

	memcpy(&word, code, sizeof(word));
	if ((word & 0xff000010) == 0x54000000 || (word & 0x7e000000) == 0x34000000) { /* b.cond, cbz, cbnz */
		*target = address + ((int64_t)(int32_t)(word << 8) >> 13 << 2);
		return CONDITIONAL;
	}
	if ((word & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		*target = address + ((int64_t)(int32_t)(word << 13) >> 18 << 2);
		return CONDITIONAL;
	}
	if ((word & 0x7c000000) == 0x14000000) /* b, bl */
		return word >> 31 != 0 ? CALL : JUMP;
	if ((word & 0xfe000000) == 0xd6000000) /* br, blr, ret and eret */
		return (word >> 21 & 3) == 1 ? CALL : (word >> 21 & 3) == 0 ? JUMP : RETURN;
	return NO_BRANCH;
}

enum branch_kind branch_decode(bool arm, const uint8_t *code, size_t size, uint64_t address, uint64_t *target)
{
	*target = 0;
	if (arm)
		return size == 4 ? decode_arm(code, address, target) : NO_BRANCH;
	return decode_x86(code, size, address, target);
}
