// SPDX-License-Identifier: GPL-2.0
/* Attaches devices, checks that their filters are in place, and loads programs in advance. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/published.h"
#include "attach/attach.h"
#include "attach/shaping.h"
#include "attach/attachment.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "gate/maps.h"
#include "keep/keep.h"
#include "migrate/open.h"

/*
 * Interval of checks of attachments, in ms. The checks find changes that cause no event: a detached
 * link, or a mount over the gate. keep reverts changes of other processes at most once per
 * interval. Otherwise two processes that keep one gate (with locks in two directories) would
 * replace each other's attachments all the time.
 */
#define CHECK_EVERY_MS 3000

void attach_again(struct keep *keep)
{
	uint64_t now = now_ms(), next = keep->attached_ms + CHECK_EVERY_MS;

	step_soon(keep, STEP_ATTACH, next > now + GATE_WAIT_MS ? next - now : GATE_WAIT_MS);
}

/*
 * Returns whether there are devices to attach: the rules file specifies devices, and the gate
 * exists and is not hidden.
 */
static bool has_devices(const struct keep *keep)
{
	return keep->config.places.specified && keep->snapshot.exists && !keep->is_hidden;
}

/* --- Attaching ------------------------------------------------------------------------------ */

/* Logs which attachments were added or removed. Updates keep->attached. */
static void placings_inform(struct keep *keep, const struct placings *placings)
{
	keep->attached = placings->wanted_count;
	for (unsigned int i = 0; i < placings->count; i++) {
		const struct placing *placing = &placings->list[i];
		const struct attachment *a = &placing->attachment;

		keep->worked |= placing->done;
		if (placing->done)
			keep->attached_ms = now_ms();
		if (!placing->done)
			keep->attached -= !placing->detaches;
		else if (!placing->detaches)
			error_inform("attached", a->device,
				     "attached to gate '%s', hook %s, mode %s", keep->args->gate,
				     hook_names[a->hook], mode_names[a->mode]);
		else
			error_inform("detached", a->device, "%s gate '%s', hook %s",
				     a->program_id ? "detached from" : "gone from",
				     keep->args->gate, hook_names[a->hook]);
	}
}

/*
 * Loads programs before a device appears, because loading takes up to 1 s. During this time,
 * packets of a new device would pass unchecked.
 */
static int programs_prepare(struct keep *keep, const struct gate *gate)
{
	const struct places *places = &keep->config.places;
	struct programs before = keep->programs;
	unsigned int hooks = 0;
	int err;

	for (unsigned int i = 0; i < places->count; i++)
		hooks |= HOOK_BIT(places->list[i].hook);
	err = programs_load(gate, hooks, &keep->programs);
	/* report that this run changed something, so that the step does not rest */
	keep->worked |= memcmp(&before, &keep->programs, sizeof(before)) != 0;
	return err;
}

static int places_make(struct keep *keep, const struct gate *gate)
{
	uint32_t gate_id = gate_map_id(gate->map[MAP_GATE]);
	const struct places *places = &keep->config.places;
	struct attachment made[ATTACHMENTS_MAX];
	bool missing[places->count + 1];
	struct shaping shaping = {0};
	struct placings placings;
	int err = placings_plan(gate, places, MISSING_SILENT, missing, &placings);

	if (err)
		return err;
	if (keep->programs_gate != gate_id) /* a resize or a new gate has replaced the maps */
		programs_close(&keep->programs);
	keep->programs_gate = gate_id;
	placings_make_present(gate, &keep->programs, &placings);
	placings_inform(keep, &placings);
	stacked_note(gate, made, placings_made(&placings, made));
	keep->is_waiting = false;
	for (unsigned int i = 0; i < places->count; i++) {
		const struct place *place = &places->list[i];

		keep->is_waiting |= missing[i];
		if (missing[i])
			error_warn("device-missing", keep->object, "waiting for %s%s%s",
				   place->device, *place->netns ? " in network namespace " : "",
				   place->netns);
	}
	for (unsigned int i = 0; i < keep->config.rules.count; i++)
		shaping_add(&shaping, &keep->config.rules.rules[i]);
	if (placings.count)
		shaping_check(gate, &shaping, placings.wanted, placings.wanted_count, true);
	memcpy(keep->wanted, placings.wanted, sizeof(keep->wanted));
	keep->wanted_count = placings.wanted_count;
	keep->failed = placings.failed;
	err = programs_prepare(keep, gate);
	return keep->failed ? -EIO : err;
}

int attach_run(struct keep *keep)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	int err, watched = watch_devices(keep);
	unsigned int events;

	keep->failed &= has_devices(keep);
	if (!has_devices(keep))
		return watched;
	if (keep_trial_left_ms(keep))
		return -EBUSY; /* retry after the trial, because its end may undo attachments */
	err = gate_open(&gate, keep->args->gate, GATE_CHANGE, NULL);
	if (err)
		return err;
	events = watch_read(keep);
	err = places_make(keep, &gate);
	if (keep->worked)
		attachments_publish(&gate);
	/* ignore WATCH_LINKS events, because this process has the gate's lock and caused them */
	events |= watch_read(keep) & ~EVENT(WATCH_LINKS);
	gate_close(&gate);
	on_events(keep, events);
	return err ?: watched;
}

/* --- Other steps ---------------------------------------------------------------------------- */

int check_run(struct keep *keep)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	unsigned int count = 0;
	struct attachment all[ATTACHMENTS_MAX];
	int err, watched;

	step_at(keep, STEP_CHECK, now_ms() + CHECK_EVERY_MS);
	if (!keep->has_config)
		return 0;
	step_soon(keep, STEP_LOOK, 0);
	if (keep->watch.lacking) {
		watch_files(keep);
		watch_gate(keep);
		step_soon(keep, STEP_LISTS, 0);
		step_soon(keep, STEP_ATTACH, 0);
	}
	if (keep->watch.lacking)
		error_warn("no-watches", keep->object,
			   "no inotify watch is left, so changes are found every 3 seconds; raise "
			   "sysctl fs.inotify.max_user_watches");
	if (!has_devices(keep))
		return 0;
	watched = watch_devices(keep);
	if (keep->watch.sockets_changed) /* a new or removed namespace changed the sockets */
		step_soon(keep, STEP_ATTACH, 0);
	err = gate_open(&gate, keep->args->gate, GATE_NO_MAPS, NULL)
		      ?: attachments_read(&gate, all, &count);
	for (unsigned int i = 0; !err && i < count; i++)
		if (!all[i].program_id && !all[i].device_gone)
			attach_again(keep);
	return err ?: watched;
}

/*
 * Replaces the attached programs by new programs. virtio_net loses its XDP program during a
 * suspension, but keeps the link. Updating the link to the old program has no effect.
 */
int renew_run(struct keep *keep)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	struct replacements replacements = {.count = 0};
	int err;

	if (!keep->snapshot.exists || keep->is_hidden)
		return 0;
	err = gate_open(&gate, keep->args->gate, GATE_CHANGE, NULL)
		      ?: programs_replace(&gate, &gate, &replacements);
	if (!err)
		attachments_publish(&gate);
	if (!err && replacements.count)
		error_inform("renewed", keep->object, "%u %s replaced", replacements.count,
			     plural(replacements.count, "program", "programs"));
	replacements_close(&replacements);
	return err;
}
