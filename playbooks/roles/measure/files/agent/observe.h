/* A run of the workload with a monitor beside it. */
#ifndef PERFBISECT_OBSERVE_H
#define PERFBISECT_OBSERVE_H

/* Where a monitor leaves what it saw, below the current folder; emptied before each monitored run. */
#define OBSERVED "perfbisect-observed"

/*
 * Run COMMAND once (or as often as the monitor's own program does) with the monitor NAME of the file PLAN. A plan
 * is lines of text; of all that follow "monitor NAME":
 *
 *     file PATTERN        keep matching files as they are before and after the run
 *     keep PATH           keep a file as it is after the run
 *     log                 keep the kernel's log, before and after
 *     trace [FUNCTION]    count calls with ftrace's function profiler; of all functions if none is named
 *     word TEXT           a program and its words, to which COMMAND is given instead of being executed
 *     then FILE TEXT...   afterwards a program (its words separated by blanks), its output into FILE
 *
 * What is kept of /proc/stat is called "proc:stat.before" and "proc:stat.after". What this system cannot give is
 * said in the file "absent", one thing a line. Returns COMMAND's exit code, 128 + the signal that ended it.
 */
int observe(const char *plan, const char *name, char **command);

/* Forget what an earlier monitored run left. */
void observed_clear(void);

/* Write what was left as lines of JSON, {"file": name, "data": base64}; large files in several of them. */
void observed_print(void);

/* Switch the function profiler off if it is on: a monitored run that was killed could not. */
void trace_off(void);

#endif
