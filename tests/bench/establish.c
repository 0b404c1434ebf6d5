// SPDX-License-Identifier: GPL-2.0
#include "establish.h"

#include "rules/prefix.h"
#include "run.h"

/*
 * A gate notices other settings in its next window, and that a crowd is gone in the one after: 64
 * ms each.
 */
#define NOTICE_NS 300000000

/* More than there are sources, and no more than add up. */
#define EVERYBODY (1U << 30)

uint32_t sources_count(const char *sources)
{
	struct sl_prefix prefix;

	if (prefix_parse(sources, &prefix))
		return 0;
	return 1U << (SL_FAMILY_BITS + 32 - prefix.bits);
}

enum status sources_walk(const struct bpf_object *object, const char *sources)
{
	struct sl_prefix prefix;
	uint32_t ns, verdict;
	struct frame frame;
	int err;

	if (prefix_parse(sources, &prefix))
		return FAILED;
	run_on(0);
	frame_write(&frame, &prefix, 0);
	err = frame_run(bench_program(object, "bench_walk4"), &frame, sources_count(sources), &ns,
			&verdict);
	return err ? failure("%s: cannot run packets: %s", sources, why(err)) : OK;
}

enum status establish(struct gate *gate, const struct bpf_object *object, const char *sources)
{
	struct sl_meeting *meeting = &gate->state->meeting;
	struct sl_meeting usual = *meeting;
	enum status status;

	for (int pool = 0; pool < SL_POOLS; pool++)
		meeting->tokens[pool] = meeting->refill[pool] = EVERYBODY;
	meeting->crowd = EVERYBODY;
	sleep_ns(NOTICE_NS);
	status = sources_walk(object, sources);
	*meeting = usual;
	sleep_ns(NOTICE_NS);
	return status;
}
