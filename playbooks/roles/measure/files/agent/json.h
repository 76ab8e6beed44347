/* The little JSON that the agent writes: objects on one line, to standard output. */
#ifndef PERFBISECT_JSON_H
#define PERFBISECT_JSON_H

#include <stddef.h>

/* Write text as a JSON string with its quotes. Bytes above 127 become \u00XX: the reader gets Latin-1. */
void json_string(const char *text, size_t length);

/* Write bytes as a base64 JSON string. */
void json_base64(const unsigned char *data, size_t length);

#endif
