/*
 * ext2 with one file; layout: Documentation/filesystems/ext2.rst, fs/ext2/ext2.h.
 *
 * One block group of 4 KiB blocks:
 *     0 superblock (at byte 1024)   1 group descriptor   2 block bitmap   3 inode bitmap   4 inodes (32 of 128 bytes)
 *     5 root folder   6 indirect block   7 double indirect block   8.. its indirect blocks   then the file
 */
#include "ext2.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum {
	BLOCK = 4096, POINTERS = BLOCK / 4, GROUP_BLOCKS = BLOCK * 8, INODES = 32, INODE_BYTES = 128,
	ROOT = 2, FILE_INODE = 11, /* the first that is not reserved */
	BLOCK_BITMAP = 2, INODE_BITMAP = 3, INODE_TABLE = 4, ROOT_BLOCK = 5, INDIRECT = 6, DOUBLE = 7, INDIRECTS = 8,
	DIRECT = 12
};

static void put32(unsigned char *at, uint32_t value)
{
	memcpy(at, &value, 4); /* ext2 is little-endian, as every machine this runs on */
}

static void put16(unsigned char *at, uint16_t value)
{
	memcpy(at, &value, 2);
}

static int write_block(int handle, uint32_t number, const unsigned char *data)
{
	ssize_t done = pwrite(handle, data, BLOCK, (off_t)number * BLOCK);

	if (done >= 0 && done != BLOCK)
		errno = ENOSPC;
	return done == BLOCK ? 0 : -1;
}

static void inode(unsigned char *at, uint16_t mode, uint16_t links, uint32_t bytes, uint32_t blocks)
{
	put16(at, mode);
	put32(at + 4, bytes);
	put16(at + 26, links);
	put32(at + 28, blocks * (BLOCK / 512));
}

static void entry(unsigned char *at, uint32_t number, uint16_t length, unsigned char kind, const char *name)
{
	put32(at, number);
	put16(at + 4, length);
	at[6] = strlen(name);
	at[7] = kind;
	memcpy(at + 8, name, strlen(name));
}

static void set_bits(unsigned char *map, uint32_t from, uint32_t to)
{
	for (; from < to; from++)
		map[from / 8] |= 1 << from % 8;
}

/* The blocks that map the file: numbers of consecutive blocks from `data` on. Returns 0, or -1 with errno set. */
static int write_map(int handle, uint32_t data, uint32_t blocks, uint32_t indirects)
{
	unsigned char map[BLOCK];
	uint32_t done = DIRECT, number, i;

	for (number = 0; number <= indirects; number++) {
		memset(map, 0, sizeof(map));
		for (i = 0; i < POINTERS && done < blocks; i++, done++)
			put32(map + 4 * i, data + done);
		if (write_block(handle, number == 0 ? INDIRECT : INDIRECTS + number - 1, map) != 0)
			return -1;
	}
	memset(map, 0, sizeof(map));
	for (i = 0; i < indirects; i++)
		put32(map + 4 * i, INDIRECTS + i);
	return write_block(handle, DOUBLE, map);
}

int ext2_format(int handle, uint64_t bytes)
{
	uint32_t blocks = bytes / BLOCK, indirects = blocks / POINTERS + 1, data = INDIRECTS + indirects;
	uint32_t total = data + blocks, i;
	unsigned char block[BLOCK], *super = block + 1024, *file;

	if (bytes % BLOCK || blocks < DIRECT || total >= GROUP_BLOCKS) {
		errno = EINVAL;
		return -1;
	}
	memset(block, 0, sizeof(block));
	put32(super + 0, INODES);
	put32(super + 4, total);
	put32(super + 16, INODES - FILE_INODE); /* free inodes */
	put32(super + 24, 2);			/* block size: 1024 << 2 */
	put32(super + 28, 2);			/* fragment size, the same */
	put32(super + 32, GROUP_BLOCKS);
	put32(super + 36, GROUP_BLOCKS);
	put32(super + 40, INODES);
	put16(super + 54, 0xffff);		/* never checked for the number of mounts */
	put16(super + 56, 0xef53);		/* magic */
	put16(super + 58, 1);			/* clean */
	put16(super + 60, 1);			/* errors are ignored */
	put32(super + 76, 1);			/* revision with the two following */
	put32(super + 84, FILE_INODE);
	put16(super + 88, INODE_BYTES);
	put32(super + 96, 2);			/* feature: kinds in folder entries */
	if (write_block(handle, 0, block) != 0)
		return -1;

	memset(block, 0, sizeof(block));
	put32(block + 0, BLOCK_BITMAP);
	put32(block + 4, INODE_BITMAP);
	put32(block + 8, INODE_TABLE);
	put16(block + 14, INODES - FILE_INODE);
	put16(block + 16, 1); /* folders */
	if (write_block(handle, 1, block) != 0)
		return -1;

	memset(block, 0, sizeof(block));
	set_bits(block, 0, total);
	set_bits(block, total, GROUP_BLOCKS); /* what lies behind the end is not free either */
	if (write_block(handle, BLOCK_BITMAP, block) != 0)
		return -1;
	memset(block, 0, sizeof(block));
	set_bits(block, 0, FILE_INODE);
	set_bits(block, INODES, GROUP_BLOCKS);
	if (write_block(handle, INODE_BITMAP, block) != 0)
		return -1;

	memset(block, 0, sizeof(block));
	inode(block + (ROOT - 1) * INODE_BYTES, 0040700, 2, BLOCK, 1);
	put32(block + (ROOT - 1) * INODE_BYTES + 40, ROOT_BLOCK);
	file = block + (FILE_INODE - 1) * INODE_BYTES;
	inode(file, 0100600, 1, blocks * BLOCK, blocks + indirects + 2);
	for (i = 0; i < DIRECT; i++)
		put32(file + 40 + 4 * i, data + i);
	put32(file + 40 + 4 * DIRECT, INDIRECT);
	put32(file + 40 + 4 * (DIRECT + 1), DOUBLE);
	if (write_block(handle, INODE_TABLE, block) != 0)
		return -1;

	memset(block, 0, sizeof(block));
	entry(block, ROOT, 12, 2, ".");
	entry(block + 12, ROOT, 12, 2, "..");
	entry(block + 24, FILE_INODE, BLOCK - 24, 1, EXT2_FILE);
	if (write_block(handle, ROOT_BLOCK, block) != 0)
		return -1;
	return write_map(handle, data, blocks, indirects);
}
