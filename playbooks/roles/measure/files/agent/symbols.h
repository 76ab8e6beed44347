/* Where the functions of loaded modules are, by the kernel's own list. */
#ifndef PERFBISECT_SYMBOLS_H
#define PERFBISECT_SYMBOLS_H

/* Write a line of JSON with the lines of /proc/kallsyms that name code of modules: {"symbols": base64}. */
void symbols_print(void);

#endif
