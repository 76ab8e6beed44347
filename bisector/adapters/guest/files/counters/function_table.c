/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "function_table.h"

#include <stdio.h>
#include <stdlib.h>

enum { FUNCTIONS_MAX = 1 << 20 }; /* a kernel of a distribution has 100,000 */

struct record {
	uint64_t address;
	uint32_t number, flags;
};

static struct record *records;
static size_t count;
static uint8_t *flags; /* by number */

bool functions_read(const char *path)
{
	FILE *file = fopen(path, "rb");
	size_t i;

	if (file == NULL)
		return false;
	records = calloc(FUNCTIONS_MAX, sizeof(*records));
	flags = calloc(FUNCTIONS_MAX, 1);
	if (records != NULL && flags != NULL)
		count = fread(records, sizeof(*records), FUNCTIONS_MAX, file);
	fclose(file);
	for (i = 0; i < count; i++) {
		if (records[i].number >= FUNCTIONS_MAX || (i > 0 && records[i].address <= records[i - 1].address))
			return false;
		flags[records[i].number] |= records[i].flags;
	}
	return count > 0;
}

uint32_t function_of(uint64_t address, uint64_t *start)
{
	size_t low = 0, high = count; /* the last record at or before the address is below `high` */

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (records[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (start != NULL)
		*start = low > 0 ? records[low - 1].address : 0;
	return low > 0 ? records[low - 1].number : OUTSIDE;
}

uint32_t function_flags(uint32_t function)
{
	return flags[function];
}
