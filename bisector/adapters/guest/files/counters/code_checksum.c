/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "code_checksum.h"

#include <stddef.h>

static const uint32_t POLYNOMIAL = 0xedb88320; /* its bits in reverse order */

uint32_t code_checksum(struct qemu_plugin_tb *tb)
{
	size_t i, at, count = qemu_plugin_tb_n_insns(tb);
	uint32_t sum = ~0U;
	int bit;

	for (i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		const uint8_t *code = qemu_plugin_insn_data(insn);

		for (at = 0; at < qemu_plugin_insn_size(insn); at++)
			for (sum ^= code[at], bit = 0; bit < 8; bit++)
				sum = sum >> 1 ^ (sum & 1 ? POLYNOMIAL : 0);
	}
	return ~sum;
}
