/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "branch_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_BITS_MAX = 24, WEAKLY_NOT_TAKEN = 1, WEAKLY_TAKEN = 2, STRONGLY_TAKEN = 3 };

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
