/* What the running system says of itself, and the settings a workload asks for. */
#ifndef PERFBISECT_FACTS_H
#define PERFBISECT_FACTS_H

/*
 * Read the facts that the file `list` names, then apply the settings in the file `settings`, then print all
 * as one line of JSON: {"name": "value", ...}. Facts come first: they are the kernel's own defaults.
 * Returns 0, or 1 if a list cannot be read.
 */
int prepare(const char *list, const char *settings);

#endif
