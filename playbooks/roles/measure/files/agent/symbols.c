#include "symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

enum { SYMBOLS_MAX = 4 << 20 }; /* bytes; a hundred modules of a distribution have 1 MB */

/* "ffffffffc0801000 t function	[module]", where a t or a w in either case is code. */
static int is_code_of_a_module(const char *line)
{
	const char *kind = strchr(line, ' ');

	return kind != NULL && kind[1] != '\0' && strchr("tTwW", kind[1]) != NULL && strstr(line, "\t[") != NULL;
}

void symbols_print(void)
{
	FILE *file = fopen("/proc/kallsyms", "r");
	char *text = malloc(SYMBOLS_MAX);
	size_t length = 0;
	char line[1024];

	while (file != NULL && text != NULL && fgets(line, sizeof(line), file) != NULL) {
		size_t bytes = strlen(line);

		if (!is_code_of_a_module(line) || length + bytes > SYMBOLS_MAX)
			continue;
		memcpy(text + length, line, bytes);
		length += bytes;
	}
	fputs("{\"symbols\":", stdout);
	json_base64((unsigned char *)text, length);
	fputs("}\n", stdout);
	fflush(stdout);
	free(text);
	if (file != NULL)
		fclose(file);
}
