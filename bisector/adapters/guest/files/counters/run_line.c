/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "run_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "block_table.h"
#include "call_tree.h"
#include "execution.h"
#include "settings.h"

enum { UNREAD_BYTES_MAX = 128 << 20 }; /* a profile of a run is 0.1 to 2 MB, and each is read after its run */

typedef unsigned long long number;

__attribute__((format(printf, 1, 2))) static void print(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(settings.out, format, arguments);
	va_end(arguments);
}

/* Blocks of the kernel, or those of programs, which have the checksum of their code in addition. */
static void print_blocks(const char *name, bool kernel)
{
	const char *separator = "";
	uint32_t i, level;

	print(",\"%s\":[", name);
	for (i = 0; i < blocks_kept(); i++) {
		const struct block *block = block_at(i);

		if (block->executions == 0 || is_kernel(block->address) != kernel)
			continue;
		print("%s[%llu,%llu,%u,%llu", separator, (number)block->address,
		      (number)(block->fall_through - block->address), block->instructions, (number)block->executions);
		if (!kernel)
			print(",%u", block->checksum);
		for (level = 0; settings.caches && level < LEVELS; level++)
			print(",%llu", (number)block->missed[level]);
		if (settings.caches && settings.branches)
			print(",%llu", (number)block->mispredicted);
		print("]");
		separator = ",";
	}
	print("]");
}

/* Each path behind the one that it was called from; the first one has the number 1. */
static void print_paths(void)
{
	uint32_t i;

	print(",\"paths\":[");
	for (i = ROOT + 1; i < tree_size(); i++) {
		const struct path *path = tree_path(i);

		print("%s[%u,%u,%llu,%llu]", i > ROOT + 1 ? "," : "", path->parent, path->function,
		      (number)path->instructions, (number)path->calls);
	}
	print("]");
}

static void print_run(uint32_t run, const struct more_instructions *more, bool paths)
{
	const struct memory_model *model = &execution.model;
	number user = more->user, kernel = more->kernel;
	uint32_t i;

	for (i = 0; i < blocks_kept(); i++) {
		const struct block *block = block_at(i);

		*(is_kernel(block->address) ? &kernel : &user) += block->executions * block->instructions;
	}
	print("{\"run\":%u,\"user\":%llu,\"kernel\":%llu", run, user, kernel);
	if (settings.memory || settings.caches)
		print(",\"loads\":%llu,\"stores\":%llu", (number)execution.loads, (number)execution.stores);
	if (settings.branches)
		print(",\"branches\":%llu,\"taken_branches\":%llu,\"branch_misses\":%llu", (number)execution.branches,
		      (number)execution.taken_branches, (number)execution.branch_misses);
	if (settings.caches) {
		print(",\"L1i_misses\":%llu,\"L1d_misses\":%llu", (number)model->l1i.misses, (number)model->l1d.misses);
		print(",\"L2_misses\":%llu,\"LL_misses\":%llu", (number)model->l2.misses, (number)model->ll.misses);
		print(",\"iTLB_misses\":%llu,\"dTLB_misses\":%llu,\"sTLB_misses\":%llu", (number)model->itlb.misses,
		      (number)model->dtlb.misses, (number)model->stlb.misses);
	}
	if (settings.profile) {
		print_blocks("blocks", true);
		print_blocks("programs", false);
	}
	if (paths)
		print_paths();
	print("}\n");
	fflush(settings.out);
}

void write_head(const char *target)
{
	print("{\"counters\":1,\"target\":\"%s\"}\n", target);
	fflush(settings.out);
}

void write_run(uint32_t run, const struct more_instructions *more, bool paths)
{
	int file = fileno(settings.out);
	struct stat info;

	flock(file, LOCK_EX);
	if (fstat(file, &info) == 0 && info.st_size < UNREAD_BYTES_MAX)
		print_run(run, more, paths);
	flock(file, LOCK_UN);
}
