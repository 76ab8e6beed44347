/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef CODE_CHECKSUM_H
#define CODE_CHECKSUM_H

#include <stdint.h>

#include "qemu_api.h"

/*
 * CRC-32 (of ISO 3309, as zlib has it) of a block's instructions. By it a reader finds the program that a block of user
 * code is of: programs lie at the same addresses.
 */
uint32_t code_checksum(struct qemu_plugin_tb *tb);

#endif
