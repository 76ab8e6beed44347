/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "arguments.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "branch_model.h"
#include "call_tree.h"
#include "execution.h"
#include "function_table.h"
#include "memory_model.h"
#include "settings.h"

struct settings settings;

static bool is_on(const char *argument, const char *name, bool *value)
{
	size_t length = strlen(name);

	if (strncmp(argument, name, length) != 0 || strcmp(argument + length, "=on") != 0)
		return false;
	*value = true;
	return true;
}

static bool is_level(const char *argument, const char *name, struct level *level, bool *wrong)
{
	size_t length = strlen(name);

	if (strncmp(argument, name, length) != 0 || argument[length] != '=')
		return false;
	*wrong = !level_parse(level, argument + length + 1);
	return true;
}

bool argument_take(const char *argument, bool *check)
{
	struct memory_model *model = &execution.model;
	bool wrong = false;

	if (strncmp(argument, "out=", 4) == 0) {
		int fd = open(argument + 4, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);

		settings.out = fd >= 0 ? fdopen(fd, "a") : NULL;
		return settings.out != NULL;
	}
	if (strncmp(argument, "predictor=", 10) == 0) {
		settings.branches = true;
		return predictor_parse(&execution.predictor, argument + 10);
	}
	if (strncmp(argument, "functions=", 10) == 0) {
		settings.tree = true;
		return functions_read(argument + 10) && tree_prepare();
	}
	if (strncmp(argument, "follow=", 7) == 0) {
		settings.followed = strtoul(argument + 7, NULL, 10);
		return true;
	}
	if (is_on(argument, "profile", &settings.profile) || is_on(argument, "memory", &settings.memory) ||
	    is_on(argument, "virtual", &settings.by_virtual) || is_on(argument, "check", check))
		return true;
	if (is_level(argument, "L1d", &model->l1d, &wrong) || is_level(argument, "L1i", &model->l1i, &wrong) ||
	    is_level(argument, "L2", &model->l2, &wrong) || is_level(argument, "LL", &model->ll, &wrong) ||
	    is_level(argument, "dTLB", &model->dtlb, &wrong) || is_level(argument, "iTLB", &model->itlb, &wrong) ||
	    is_level(argument, "sTLB", &model->stlb, &wrong))
		return !wrong;
	return false;
}
