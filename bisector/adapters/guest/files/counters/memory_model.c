/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "memory_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEVEL_BYTES_MAX = 1 << 30, WAYS_MAX = 4096 };

static int log2_of(unsigned long value)
{
	return value != 0 && (value & (value - 1)) == 0 ? __builtin_ctzl(value) : -1;
}

bool level_parse(struct level *level, const char *text)
{
	unsigned long size, ways, unit;
	int used = 0;

	if (sscanf(text, "%lu:%lu:%lu%n", &size, &ways, &unit, &used) != 3 || text[used] != '\0' ||
	    size > LEVEL_BYTES_MAX || ways == 0 || ways > WAYS_MAX || log2_of(unit) < 0 || unit > size ||
	    size % (ways * unit) != 0 || log2_of(size / (ways * unit)) < 0)
		return false;
	level->sets = size / (ways * unit);
	level->ways = ways;
	level->shift = log2_of(unit);
	level->tags = calloc((size_t)level->sets * ways, sizeof(*level->tags));
	return level->tags != NULL;
}

static void clear(struct level *level)
{
	if (level->sets != 0)
		memset(level->tags, 0, (size_t)level->sets * level->ways * sizeof(*level->tags));
	level->misses = 0;
}

void memory_model_clear(struct memory_model *model)
{
	clear(&model->l1i);
	clear(&model->l1d);
	clear(&model->l2);
	clear(&model->ll);
	clear(&model->itlb);
	clear(&model->dtlb);
	clear(&model->stlb);
}

/* Look up `tag` (never 0) in the set of `index`; it is the most recently used afterwards. Returns true for a miss. */
static bool look_up(struct level *level, uint64_t index, uint64_t tag)
{
	uint64_t *set = level->tags + (index & (level->sets - 1)) * level->ways;
	unsigned int way;

	if (set[0] == tag)
		return false;
	for (way = 1; way < level->ways; way++)
		if (set[way] == tag)
			break;
	if (way == level->ways) {
		memmove(set + 1, set, (level->ways - 1) * sizeof(*set));
		set[0] = tag;
		return true;
	}
	memmove(set + 1, set, way * sizeof(*set));
	set[0] = tag;
	return false;
}

static bool misses(struct level *level, uint64_t address)
{
	uint64_t entry = address >> level->shift;

	return look_up(level, entry, entry + 1);
}

/* A translation is of a page in one address space: both addresses make the tag, so that processes stay apart. */
static void translate(struct memory_model *model, enum level_number number, uint64_t virt, uint64_t phys,
		      uint64_t missed[LEVELS])
{
	struct level *first = number == ITLB ? &model->itlb : &model->dtlb;
	uint64_t page = virt >> first->shift, tag;

	if (first->sets == 0)
		return;
	tag = (page ^ (phys >> first->shift) * 0x9e3779b97f4a7c15ULL) | 1;
	if (!look_up(first, page, tag))
		return;
	first->misses++;
	missed[number]++;
	if (model->stlb.sets != 0 && look_up(&model->stlb, page, tag)) {
		model->stlb.misses++;
		missed[STLB]++;
	}
}

/* One access that may lie across two lines counts once in each level. */
static void pass(struct memory_model *model, enum level_number number, uint64_t phys, unsigned int bytes,
		 uint64_t missed[LEVELS])
{
	struct level *first = number == L1I ? &model->l1i : &model->l1d;
	uint64_t line = phys >> first->shift, last = (phys + bytes - 1) >> first->shift;
	bool in_first = false, in_l2 = false, in_ll = false;

	for (; line <= last; line++) {
		uint64_t address = line << first->shift;

		if (!misses(first, address))
			continue;
		in_first = true;
		if (model->l2.sets != 0) {
			if (!misses(&model->l2, address))
				continue;
			in_l2 = true;
		}
		if (model->ll.sets != 0 && misses(&model->ll, address))
			in_ll = true;
	}
	first->misses += in_first;
	model->l2.misses += in_l2;
	model->ll.misses += in_ll;
	missed[number] += in_first;
	missed[L2] += in_l2;
	missed[LL] += in_ll;
}

void data_access(struct memory_model *model, uint64_t virt, uint64_t phys, unsigned int bytes, uint64_t missed[LEVELS])
{
	translate(model, DTLB, virt, phys, missed);
	pass(model, L1D, phys, bytes, missed);
}

void code_fetch(struct memory_model *model, uint64_t virt, uint64_t phys, unsigned int bytes, uint64_t missed[LEVELS])
{
	uint64_t line = phys >> model->l1i.shift, last = (phys + bytes - 1) >> model->l1i.shift;

	translate(model, ITLB, virt, phys, missed);
	for (; line <= last; line++) /* each line is a fetch of its own */
		pass(model, L1I, line << model->l1i.shift, 1, missed);
}
