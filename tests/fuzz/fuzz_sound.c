// SPDX-License-Identifier: GPL-2.0
/*
 * Tests limits, states and slices of arbitrary bytes, because the owner of a gate can write such
 * bytes to its maps. If a limit passes the checks of user/rules, it can be compiled, printed and
 * charged without a fault.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kinds.h"
#include "rules/limit_words.h"
#include "rules/matches.h"
#include "rules/prefix.h"

#define FRAME 1514

static const struct machine machine = {.cpus = 2, .jiffy_ns = 4000000};

struct input {
	struct sl_prefix prefix;
	struct limit limit;
	struct sl_state state;
	struct sl_slice slice;
	uint64_t now;
	uint32_t bytes;
};

static void expect(bool truth)
{
	if (!truth)
		abort();
}

/* Makes a valid limit, and changes some of its bytes as the input specifies. */
static void input_make(const uint8_t *data, size_t size, struct input *input)
{
	uint8_t *bytes = (uint8_t *)input;

	input->limit = limit_defaults;
	input->limit.spec.rate = 1000;
	input->limit.spec.burst = 250;
	for (size_t i = 0; i + 2 < size; i += 3)
		bytes[(data[i] << 8 | data[i + 1]) % sizeof(*input)] = data[i + 2];
}

static void limit_use(const struct input *input, enum sl_family family)
{
	struct sl_limit limit = limit_compile(&input->limit, family, &machine);
	uint64_t cost = credit_cost(&limit, 1, input->bytes % (1 << 20));
	uint64_t now = kind_now(limit.kind, &input->state, input->now);
	struct sl_state state = input->state, full = kind_full(&limit, now);
	struct sl_slice slice = input->slice;

	kind_decide(&limit, &input->state, 0, cost, now);
	kind_roll(&limit, &state, now);
	if (slice.credit > (int64_t)SL_BURST_TICKS_MAX ||
	    slice.credit < -(int64_t)SL_BURST_TICKS_MAX)
		slice.credit = 0;
	if (!credit_must_wait(&slice, cost, now))
		kind_charge(limit.kind, &limit, &state, &slice,
			    &(struct kind_charge){.cost = cost, .now = now});
	expect(kind_decide(&limit, &full, 0, cost, now).retry_after == 0 ||
	       kind_refusal(&limit, cost) == SL_DROP_OVERSIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[SPEC_TEXT], prefix_text[PREFIX_TEXT];
	struct input input;

	memset(&input, 0, sizeof(input));
	input_make(data, size, &input);
	if (!prefix_is_sound(&input.prefix) || !match_is_sound(&input.limit.match) ||
	    !limit_is_sound(&input.limit.spec) || !limit_name_is_valid(input.limit.spec.name))
		return 0;
	input.limit.second.rate = 0;
	expect(strlen(prefix_format(&input.prefix, prefix_text)) < PREFIX_TEXT);
	for (int field = 0; field < SPEC_FIELDS; field++)
		spec_format(&input.limit, &input.prefix, field, text);
	for (enum sl_family family = 0; family < SL_FAMILIES; family++)
		limit_use(&input, family);
	return 0;
}
