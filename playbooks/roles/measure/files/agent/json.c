#include "json.h"

#include <stdio.h>

void json_string(const char *text, size_t length)
{
	size_t i;

	putchar('"');
	for (i = 0; i < length; i++) {
		unsigned char c = text[i];

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 32 || c > 126)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

void json_base64(const unsigned char *data, size_t length)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t i;

	putchar('"');
	for (i = 0; i < length; i += 3) {
		size_t left = length - i;
		unsigned long group = (unsigned long)data[i] << 16;

		if (left > 1)
			group |= (unsigned long)data[i + 1] << 8;
		if (left > 2)
			group |= data[i + 2];
		putchar(digits[group >> 18 & 63]);
		putchar(digits[group >> 12 & 63]);
		putchar(left > 1 ? digits[group >> 6 & 63] : '=');
		putchar(left > 2 ? digits[group & 63] : '=');
	}
	putchar('"');
}
