/* What is set on the machine for a workload, and put back afterwards. */
#ifndef PERFBISECT_SETTINGS_H
#define PERFBISECT_SETTINGS_H

/* Where `prepare` notes what it changed, in the form of the settings themselves. */
#define UNDO "perfbisect-undo"

/* Told of each setting: name, what is known of it ("before", "after", "error"), and the text. */
typedef void (*setting_fact)(const char *name, const char *which, const char *text);

/*
 * Make the settings of a file, one a line; lines of one name stand together and are one setting:
 *
 *     NAME PATH VALUE      write VALUE to a file, or to every file that matches a pattern
 *     NAME !SCRIPT VALUE   what is no file: "sh SCRIPT NAME get" tells how it is, "sh SCRIPT NAME set VALUE" sets it
 *
 * What changed is noted in UNDO. A file that is not there is "absent"; what cannot be set is told with the reason.
 * Returns 0, or 1 if the file cannot be read.
 */
int settings_make(const char *file, setting_fact tell);

/* Put back what UNDO notes, the last change first. */
void settings_undo(void);

/*
 * From now on, when this process has ended, however it ends, what UNDO notes is put back. Returns a handle for
 * settings_release(), or -1 if there is nothing to put back.
 */
int settings_guard(void);

/* Put it back now, and wait for that. */
void settings_release(int guard);

#endif
