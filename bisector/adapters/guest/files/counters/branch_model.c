/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "branch_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_BITS_MAX = 24, WEAKLY_NOT_TAKEN = 1, WEAKLY_TAKEN = 2, STRONGLY_TAKEN = 3 };

static enum branch_kind decode_x86(const uint8_t *code, size_t size, uint64_t address, uint64_t *target)
{
	size_t at = 0;
	uint8_t operation;
	int32_t offset;

	/* prefixes: segments and hints, operand and address size, lock and rep, REX */
	while (at < size && (code[at] == 0x26 || code[at] == 0x2e || code[at] == 0x36 || code[at] == 0x3e ||
			     (code[at] >= 0x64 && code[at] <= 0x67) || code[at] == 0xf0 || code[at] == 0xf2 ||
			     code[at] == 0xf3 || (code[at] & 0xf0) == 0x40))
		at++;
	if (at + 1 > size)
		return NO_BRANCH;
	operation = code[at];
	if (((operation & 0xf0) == 0x70 || (operation >= 0xe0 && operation <= 0xe3)) && at + 2 == size) {
		*target = address + size + (int8_t)code[at + 1];
		return CONDITIONAL;
	}
	if (operation == 0x0f && at + 6 == size && (code[at + 1] & 0xf0) == 0x80) {
		memcpy(&offset, code + at + 2, sizeof(offset));
		*target = address + size + (int64_t)offset;
		return CONDITIONAL;
	}
	if (operation == 0xeb || operation == 0xe9 || operation == 0xe8 || operation == 0xc3 || operation == 0xc2)
		return JUMP;
	if (operation == 0xff && at + 1 < size && ((code[at + 1] >> 3 & 7) == 2 || (code[at + 1] >> 3 & 7) == 4))
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
	if ((word & 0x7c000000) == 0x14000000 || (word & 0xfe000000) == 0xd6000000) /* b, bl; br, blr, ret and eret */
		return JUMP;
	return NO_BRANCH;
}

enum branch_kind branch_decode(bool arm, const uint8_t *code, size_t size, uint64_t address, uint64_t *target)
{
	if (arm)
		return size == 4 ? decode_arm(code, address, target) : NO_BRANCH;
	return decode_x86(code, size, address, target);
}

bool predictor_parse(struct predictor *predictor, const char *text)
{
	int used = 0;

	if (sscanf(text, "%u:%u%n", &predictor->table_bits, &predictor->history_bits, &used) != 2 ||
	    text[used] != '\0' || predictor->table_bits == 0 || predictor->table_bits > TABLE_BITS_MAX ||
	    predictor->history_bits > predictor->table_bits)
		return false;
	predictor->counters = malloc((size_t)1 << predictor->table_bits);
	return predictor->counters != NULL;
}

void predictor_clear(struct predictor *predictor)
{
	if (predictor->counters != NULL)
		memset(predictor->counters, WEAKLY_NOT_TAKEN, (size_t)1 << predictor->table_bits);
	predictor->history = 0;
}

bool predictor_outcome(struct predictor *predictor, uint64_t address, bool taken)
{
	uint64_t mask = ((uint64_t)1 << predictor->table_bits) - 1;
	uint8_t *counter = predictor->counters + ((address ^ predictor->history) & mask);
	bool wrong = (*counter >= WEAKLY_TAKEN) != taken;

	if (taken && *counter < STRONGLY_TAKEN)
		(*counter)++;
	else if (!taken && *counter > 0)
		(*counter)--;
	predictor->history = (predictor->history << 1 | taken) & (((uint64_t)1 << predictor->history_bits) - 1);
	return wrong;
}
