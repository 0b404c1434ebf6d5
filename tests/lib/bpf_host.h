/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Compiles headers of bpf/ for the host: include it before them. One CPU runs at a time, by the
 * injected clock of bpf/base.h. The maps are the test's:
 *
 *   map_find         bpf_map_lookup_elem: the value of a key, or NULL
 *   host_cpu         the number of the CPU
 *   host_meanwhile   NULL, or what another CPU does between two rounds of a bpf_loop()
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
#pragma GCC diagnostic ignored "-Wunknown-pragmas" /* unroll, which gcc does not know */
#endif

#define asm __asm__
#define typeof __typeof__
#define SL_TEST_CLOCK

/* The entry of a map that is an array of `count` items; NULL: the key is beyond it. */
static inline void *array_entry(void *array, size_t size, size_t count, const void *key)
{
	uint32_t index;

	memcpy(&index, key, sizeof(index));
	return index < count ? (char *)array + index * size : NULL;
}

#endif
