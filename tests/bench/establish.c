// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
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

int sources_walk(const struct bpf_object *object, const char *sources)
{
	struct sources parsed;
	uint32_t ns, verdict;
	struct frame frame;
	const char *program;
	int err;

	if (sources_parse(sources, &parsed))
		return -EIO;
	run_on(0);
	frame_write(&frame, &parsed, 0);
	program = prefix_is_ipv4(&parsed.prefix) ? "bench_walk4" : "bench_walk6";
	err = frame_run(bench_program(object, program), &frame, sources_count(&parsed), &ns,
			&verdict);
	return err ? error_add(EIO, "bench", NULL, "%s: cannot run packets: %s", sources, why(err))
		   : 0;
}

int establish(struct gate *gate, const struct bpf_object *object, const char *sources)
{
	struct sl_params *params = &gate->state->params;
	uint32_t usual = params->flood_threshold;
	int status;

	params->flood_threshold = EVERYBODY;
	sleep_ns(NOTICE_NS);
	status = sources_walk(object, sources);
	params->flood_threshold = usual;
	sleep_ns(NOTICE_NS);
	return status;
}
