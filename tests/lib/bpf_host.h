/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Compiles headers of bpf/ for the host. Include this file before them. The code runs on one CPU at
 * a time, and uses the test clock of bpf/base.h. A test defines or sets:
 *
 *   map_find()       implements bpf_map_lookup_elem(): returns the value of a key, or NULL
 *   host_cpu         number of the CPU on which the code runs
 *   host_meanwhile   called between iterations of bpf_loop() to simulate another CPU; may be NULL
 */
#ifndef SLUICE_TEST_BPF_HOST_H
#define SLUICE_TEST_BPF_HOST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

static void *map_find(const void *map, const void *key);

#define bpf_map_lookup_elem(map, key) map_find(map, key)

static uint32_t host_cpu __attribute__((unused));

#define bpf_get_smp_processor_id() host_cpu

static void (*host_meanwhile)(uint32_t round);

static inline long host_loop(uint32_t times, long (*call)(uint32_t, void *), void *ctx)
{
	uint32_t i = 0;

	while (i < times && !call(i, ctx)) {
		if (host_meanwhile)
			host_meanwhile(i);
		i++;
	}
	return i;
}

#define bpf_loop(times, call, ctx, flags) host_loop(times, call, ctx)

#ifndef __clang__
#pragma GCC diagnostic ignored "-Wunknown-pragmas" /* only clang knows the pragma `unroll` */
#endif

#define asm __asm__
#define typeof __typeof__
#define SL_TEST_CLOCK

/* Looks up an index in an array map of `count` items. Returns NULL if the index is too large. */
static inline void *array_entry(void *array, size_t size, size_t count, const void *key)
{
	uint32_t index;

	memcpy(&index, key, sizeof(index));
	return index < count ? (char *)array + index * size : NULL;
}

#endif
