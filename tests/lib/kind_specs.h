/* SPDX-License-Identifier: GPL-2.0 */
/* Compiles limits of each kind for tests, with the code of the command. */
#ifndef SLUICE_TEST_KIND_SPECS_H
#define SLUICE_TEST_KIND_SPECS_H

#include "kinds.h"
#include "rules/limit.h"

#define SPEC_JIFFY_NS 4000000U

static inline struct sl_limit spec_compile_for(const struct sl_limit_spec *spec,
					       const struct machine *machine)
{
	struct limit limit = {.spec = *spec, .match = {.fact = SL_FACT_ANY}};

	limit.spec.per[SL_IPV4] = 32;
	limit.spec.per[SL_IPV6] = 64;
	return limit_compile(&limit, SL_IPV4, machine);
}

/*
 * Compiles a limit for 2^31 CPUs. With so many CPUs, slices are too small for a packet, so each
 * packet charges the state.
 */
static inline struct sl_limit spec_compile(const struct sl_limit_spec *spec)
{
	static const struct machine machine = {.cpus = 1U << 31, .jiffy_ns = SPEC_JIFFY_NS};

	return spec_compile_for(spec, &machine);
}

static inline struct sl_limit_spec spec_bucket(__u64 rate, enum sl_rate_unit unit, __u64 burst)
{
	return (struct sl_limit_spec){
		.name = "all",
		.kind = SL_TOKEN_BUCKET,
		.rate = rate,
		.rate_unit = unit,
		.burst = burst,
		.burst_unit = unit == SL_RATE_BITS ? SL_BURST_BYTES : SL_BURST_PACKETS,
	};
}

/* Returns a window that passes `most` packets in any span, or `most` bytes if `bytes` is set. */
static inline struct sl_limit_spec spec_window(__u64 most, bool bytes, __u64 span_ns,
					       unsigned int groups)
{
	return (struct sl_limit_spec){
		.name = "all",
		.kind = SL_WINDOW,
		.rate = most,
		.rate_unit = bytes ? SL_RATE_BITS : SL_RATE_PPS,
		.span_ns = span_ns,
		.groups = groups,
	};
}

static inline struct sl_limit_spec spec_shape(__u64 rate, enum sl_rate_unit unit, __u64 horizon_ns)
{
	return (struct sl_limit_spec){
		.name = "all",
		.kind = SL_SHAPE,
		.rate = rate,
		.rate_unit = unit,
		.span_ns = horizon_ns,
	};
}

#endif
