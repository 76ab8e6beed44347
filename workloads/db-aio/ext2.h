/* A file system with one file in it, made without the help of any program or library. */
#ifndef DB_AIO_EXT2_H
#define DB_AIO_EXT2_H

#include <stdint.h>

#define EXT2_FILE "data"

/*
 * Write an ext2 file system to a block device, with one file of `bytes` (a multiple of 4096) in its root, its blocks
 * one after another. Needs a device of 1/8 more than that (at most 120 MiB of file: one block group).
 * Returns 0, or -1 with errno set.
 */
int ext2_format(int handle, uint64_t bytes);

#endif
