/* SPDX-License-Identifier: GPL-2.0 */
/* What the maps of a gate take of the kernel's memory, told from their shapes: the kernel's own figure is exact from 6.4
 * on only. */
#ifndef SLUICE_MEMORY_H
#define SLUICE_MEMORY_H

#include <stdint.h>
#include <linux/bpf.h>

#include "gate.h"

/*
 * Bytes of a map that holds `entries`; what is set aside when it is made counts in full. info: as the kernel tells it.
 */
uint64_t map_memory(const struct bpf_map_info *info, uint32_t entries, unsigned int cpus);

/* The same for a map of a gate. */
enum status gate_map_memory(const struct gate *gate, enum gate_map map, uint32_t entries,
			    uint64_t *ret);

/* What the machine can give without taking it from others, in bytes: the kernel's own estimate. */
enum status memory_available(uint64_t *ret);

/* "58.7 MB"; from 10 GB on in these. */
#define MEMORY_TEXT 32
const char *memory_format(uint64_t bytes, char text[MEMORY_TEXT]);

#endif
