/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRANCH_MODEL_H
#define BRANCH_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A predictor of conditional branches, gshare (McFarling 1993): two-bit counters, indexed by the branch's address
 * XOR the outcomes of the last branches. Targets of indirect branches are taken as predicted.
 */
struct predictor {
	unsigned int table_bits, history_bits;
	uint8_t *counters;
	uint64_t history;
};

/* "TABLE_BITS:HISTORY_BITS". Returns false for what no predictor can be. */
bool predictor_parse(struct predictor *predictor, const char *text);
void predictor_clear(struct predictor *predictor);

/* Returns true where the predictor was wrong. */
bool predictor_outcome(struct predictor *predictor, uint64_t address, bool taken);

#endif
