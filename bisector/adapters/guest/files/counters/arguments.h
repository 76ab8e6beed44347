/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include <stdbool.h>

/*
 * Put one argument of the plugin (counters.c lists them) into the settings and the models. check: set by 'check=on'.
 * Returns false for one that is not understood, or whose file cannot be opened.
 */
bool argument_take(const char *argument, bool *check);

#endif
