/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef RUN_LINE_H
#define RUN_LINE_H

#include <stdbool.h>
#include <stdint.h>

/* Instructions of code that is not told apart. */
struct more_instructions {
	uint64_t user, kernel;
};

/* Write the file's first line. target: what QEMU calls the guest's processor. */
void write_head(const char *target);

/*
 * Write one line for a run that has ended. One that finds too much unread is left out: its reader misses the number.
 * paths: the calls of this one were followed.
 */
void write_run(uint32_t number, const struct more_instructions *more, bool paths);

#endif
