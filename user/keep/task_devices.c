// SPDX-License-Identifier: GPL-2.0
#include "keep/task_devices.h"

#include <stdlib.h>

#include "attach/published.h"
#include "attach/replace.h"
#include "attach/shaping.h"
#include "attach/stack.h"
#include "base/netns.h"
#include "base/text.h"
#include "gate/pins.h"
#include "migrate/open.h"
#include "gate/object.h"

/*
 * A network namespace gets its name before the name is that of a namespace, which nothing tells. So
 * it is looked for again, after twice as long each time up to a most, until it is late.
 */
#define NETNS_WAIT_MS	   10
#define NETNS_WAIT_MOST_MS 500
#define NETNS_LATE_MS	   60000

static void placing_say(const struct gate *gate, const struct placing *placing)
{
	const struct attachment *a = &placing->attachment;

	if (placing->done && !placing->detaches)
		inform("%s: attached to gate '%s', hook %s, mode %s", a->device, gate->name,
		       hook_names[a->hook], mode_names[a->mode]);
	else if (placing->done && a->program_id)
		inform("%s: detached from gate '%s', hook %s", a->device, gate->name,
		       hook_names[a->hook]);
	else if (placing->done)
		inform("%s: gone from gate '%s', hook %s", a->device, gate->name,
		       hook_names[a->hook]);
}

/* Says once which devices are waited for. */
static void missing_say(struct keep *keep, const bool *missing)
{
	const struct places *places = &keep->config.places;

	for (unsigned int i = 0; i < places->count; i++) {
		const struct place *place = &places->list[i];

		if (missing[i] && !keep->missing[i])
			warning("gate '%s': waiting for %s%s%s", keep->args->gate, place->device,
				*place->netns ? " in network namespace " : "", place->netns);
		keep->missing[i] = missing[i];
	}
}

void programs_match(struct keep *keep, const struct gate *gate)
{
	uint32_t id = gate_map_id(gate->map[MAP_GATE]);

	if (keep->programs_gate == id)
		return;
	programs_close(&keep->programs);
	keep->programs_gate = id;
}

static int places_make(struct keep *keep, const struct gate *gate)
{
	const struct places *places = &keep->config.places;
	struct attachment made[ATTACHMENTS_MAX];
	bool missing[places->count + 1];
	struct placings placings = {0};
	struct shaping shaping = {0};
	int status = placings_plan_present(gate, places, missing, &placings);

	if (status)
		return status;
	programs_match(keep, gate);
	placings_make_present(gate, &keep->programs, &placings);
	for (unsigned int i = 0; i < placings.count; i++)
		placing_say(gate, &placings.list[i]);
	stacked_note(gate, made, placings_made(&placings, made));
	missing_say(keep, missing);
	for (unsigned int i = 0; i < keep->config.rules.count; i++)
		shaping_add(&shaping, &keep->config.rules.rules[i]);
	if (placings.count)
		shaping_check_planned(gate, &shaping, placings.wanted, placings.wanted_count, true);
	for (unsigned int i = 0; i < placings.count; i++)
		keep->worked |= placings.list[i].done;
	keep->failed = placings.failed;
	keep->attached = placings.wanted_count;
	for (unsigned int i = 0; i < placings.count; i++)
		if (!placings.list[i].detaches && !placings.list[i].done)
			keep->attached--;
	free(keep->wanted);
	keep->wanted = placings.wanted;
	keep->wanted_count = placings.wanted_count;
	placings.wanted = NULL;
	placings_free(&placings);
	return keep->failed ? FAILED : OK;
}

void netns_await(struct keep *keep)
{
	/* the directory of names may have come with the first of them */
	watch_netns(&keep->watch, &keep->config.places);
	keep->netns_wait_ms = NETNS_WAIT_MS;
	keep->netns_late_ms = now_ms() + NETNS_LATE_MS;
	task_soon(keep, TASK_ATTACH, NETNS_WAIT_MS);
}

/* Looks again for a namespace whose name has just come. */
static void netns_outwait(struct keep *keep)
{
	const struct places *places = &keep->config.places;
	bool missing = false;

	for (unsigned int i = 0; i < places->count; i++)
		missing |= *places->list[i].netns && !netns_named(places->list[i].netns);
	if (!missing || now_ms() >= keep->netns_late_ms)
		return;
	task_soon(keep, TASK_ATTACH, keep->netns_wait_ms);
	keep->netns_wait_ms *= 2;
	if (keep->netns_wait_ms > NETNS_WAIT_MOST_MS)
		keep->netns_wait_ms = NETNS_WAIT_MOST_MS;
}

/*
 * Two processes that do not agree, such as two that keep a gate by locks in two places, would
 * change its attachments without end. What was made again more than DISPUTE_FREE times in a row,
 * each within DISPUTE_MS of the last, waits twice as long each time, up to DISPUTE_WAIT_MOST_MS.
 */
#define DISPUTE_FREE	     4
#define DISPUTE_MS	     120000
#define DISPUTE_WAIT_MS	     500
#define DISPUTE_WAIT_MOST_MS 60000

void links_await(struct keep *keep)
{
	uint64_t wait_ms = GATE_WAIT_MS;

	if (keep->undone > DISPUTE_FREE && now_ms() - keep->undone_ms < DISPUTE_MS)
		wait_ms = DISPUTE_WAIT_MS << (keep->undone - DISPUTE_FREE - 1);
	if (wait_ms > DISPUTE_WAIT_MOST_MS)
		wait_ms = DISPUTE_WAIT_MOST_MS;
	keep->by_others = true;
	task_soon(keep, TASK_ATTACH, wait_ms);
}

void watch_hear(struct keep *keep, unsigned int kinds)
{
	if (kinds & WATCHED_BIT(WATCHED_FILES))
		task_soon(keep, TASK_FILES, FILE_WAIT_MS);
	if (kinds & WATCHED_BIT(WATCHED_GATE))
		task_soon(keep, TASK_LOOK, GATE_WAIT_MS);
	if (kinds & WATCHED_BIT(WATCHED_LINKS))
		links_await(keep);
	if (kinds & WATCHED_BIT(WATCHED_NETNS))
		netns_await(keep);
}

/* Counts what was made again. */
static void dispute_note(struct keep *keep)
{
	uint64_t now = now_ms();

	if (!keep->worked || !keep->by_others)
		return;
	keep->undone = now - keep->undone_ms < DISPUTE_MS ? keep->undone + 1 : 1;
	keep->undone_ms = now;
	if (keep->undone > DISPUTE_FREE + 8)
		keep->undone--; /* the longest wait */
	if (keep->undone == DISPUTE_FREE + 1)
		warning("gate '%s': another process changes again and again what this one "
			"attaches: is the gate kept twice, with another /run/sluice? It is made "
			"again, ever later",
			keep->args->gate);
}

int attach_run(struct keep *keep)
{
	struct gate gate = GATE_CLOSED;
	int status, heard = links_open(&keep->links, &keep->config.places);
	unsigned int events;

	if (!keep->config.places.said || !keep->mark.exists || keep->is_hidden)
		return heard;
	if (trial_left_ms(keep))
		return FAILED; /* what is on trial may have devices of its own */
	status = gate_open(&gate, keep->args->gate, GATE_CHANGE, NULL);
	events = watch_read(&keep->watch);
	if (!status)
		status = places_make(keep, &gate);
	if (keep->worked)
		attachments_publish(&gate);
	/* ignore changes of pins under the lock: a failed try must not wake the next try */
	events |= watch_read(&keep->watch) & ~WATCHED_BIT(WATCHED_LINKS);
	gate_close(&gate);
	watch_hear(keep, events);
	dispute_note(keep);
	keep->by_others = false;
	netns_outwait(keep);
	task_soon(keep, TASK_LOAD, LOAD_WAIT_MS);
	return status ?: heard;
}

/*
 * How often it is checked whether attachments still filter. Neither `bpftool link detach` nor a
 * bpffs that is mounted over the gate makes an event.
 */
#define CHECK_EVERY_MS 3000

int check_run(struct keep *keep)
{
	struct attachment all[ATTACHMENTS_MAX];
	struct gate gate = GATE_CLOSED;
	unsigned int count = 0;
	int status;

	task_at(keep, TASK_CHECK, now_ms() + CHECK_EVERY_MS);
	if (!keep->has_file)
		return OK;
	task_soon(keep, TASK_LOOK, 0);
	if (!keep->config.places.said || !keep->mark.exists || keep->is_hidden)
		return OK;
	status = gate_open(&gate, keep->args->gate, GATE_NO_MAPS, NULL);
	if (!status)
		status = attachments_read(&gate, all, &count);
	gate_close(&gate);
	for (unsigned int i = 0; !status && i < count; i++)
		if (!all[i].program_id && !all[i].device_gone)
			links_await(keep);
	return status;
}

int load_run(struct keep *keep)
{
	const struct places *places = &keep->config.places;
	struct gate gate = GATE_CLOSED;
	unsigned int hooks = 0;
	int status;

	for (unsigned int i = 0; i < places->count; i++)
		hooks |= HOOK_BIT(places->list[i].hook);
	if (!hooks || !keep->mark.exists || keep->is_hidden)
		return OK;
	status = gate_open(&gate, keep->args->gate, GATE_READ, NULL);
	if (!status) {
		programs_match(keep, &gate);
		status = programs_load(&gate, hooks, &keep->programs);
	}
	gate_close(&gate);
	return status;
}

int renew_run(struct keep *keep)
{
	struct replacements replacements = {.count = 0};
	struct gate gate = GATE_CLOSED;
	int status;

	if (!keep->mark.exists || keep->is_hidden)
		return OK;
	status = gate_open(&gate, keep->args->gate, GATE_CHANGE, NULL);
	if (!status)
		status = programs_replace(&gate, &gate, &replacements);
	if (!status)
		attachments_publish(&gate);
	if (!status && replacements.count)
		inform("gate '%s': %u %s put anew", gate.name, replacements.count,
		       plural(replacements.count, "program", "programs"));
	replacements_close(&replacements);
	gate_close(&gate);
	return status;
}
