/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <stdbool.h>
#include <stdio.h>

#include "qemu_api.h"

/*
 * What the arguments say (arguments.c). resets: something is counted that is switched on for runs only; tree: calls are
 * followed, in the run with the number `followed`.
 */
struct settings {
	bool arm, profile, memory, branches, caches, by_virtual, tree, resets;
	uint32_t followed;
	qemu_plugin_id_t id;
	FILE *out;
};

extern struct settings settings;

#endif
