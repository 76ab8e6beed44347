"""Counters of emulated guests: a plugin of QEMU, the file that it writes, and what functions executed."""
