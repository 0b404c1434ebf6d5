// SPDX-License-Identifier: GPL-2.0
#include "doctor/watch.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/netns.h"
#include "doctor/traffic.h"
#include "migrate/open.h"

/* --- Links of a namespace ------------------------------------------------------------------- */

/* The argument of links_there(). */
struct reading {
	struct link_facts links;
	int status;
};

/* Reads links; of a network card also what its driver tells of the receive ring. */
static void links_there(void *data)
{
	struct reading *reading = data;

	reading->status = link_facts_read(&reading->links);
	for (unsigned int i = 0; i < reading->links.count; i++) {
		struct link *link = &reading->links.list[i];

		if (!link->hardware)
			continue;
		ring_losses_read(link->name, &link->losses);
		link->ring = ring_size_read(link->name);
	}
}

/* False: the namespace cannot be entered, which device_examine() of examine.c tells. */
static bool links_read_in(uint64_t netns, struct link_facts *ret)
{
	struct reading reading = {.status = FAILED};

	netns_run_in(netns, links_there, &reading);
	*ret = reading.links;
	return !reading.status;
}

/* --- The beginning -------------------------------------------------------------------------- */

static void netns_add(struct watch *watch, uint64_t netns, struct findings *findings)
{
	struct watched_netns watched = {.netns = netns};

	for (unsigned int i = 0; i < watch->count; i++)
		if (watch->list[i].netns == netns)
			return;
	if (!links_read_in(netns, &watched.links))
		return;
	if (array_grow(watch->list, watch->count, watch->room)) {
		watch->list[watch->count++] = watched;
		return;
	}
	findings->failed = true;
	link_facts_free(&watched.links);
}

void watch_begin(const struct patients *patients, struct watch *ret, struct findings *findings)
{
	*ret = (struct watch){0};
	netns_add(ret, netns_current(), findings);
	for (unsigned int i = 0; i < patients->count; i++)
		for (unsigned int j = 0; j < patients->list[i].count; j++)
			if (patients->list[i].attachments[j].program_id)
				netns_add(ret, patients->list[i].attachments[j].netns, findings);
}

const struct link *watch_busiest(const struct watch *watch)
{
	const struct link *busiest = NULL;

	for (unsigned int i = 0; watch->count && i < watch->list[0].links.count; i++) {
		const struct link *link = &watch->list[0].links.list[i];

		if (link->ethernet && link->up && (!busiest || link->received > busiest->received))
			busiest = link;
	}
	return busiest;
}

const struct link *watch_named(const struct watch *watch, const char *name)
{
	for (unsigned int i = 0; watch->count && i < watch->list[0].links.count; i++)
		if (!strcmp(watch->list[0].links.list[i].name, name))
			return &watch->list[0].links.list[i];
	return NULL;
}

/* --- The end -------------------------------------------------------------------------------- */

static void attachments_mark(const struct attachment *attachments, unsigned int count,
			     struct flows *flows)
{
	for (unsigned int i = 0; i < count; i++)
		for (unsigned int j = 0; j < flows->count; j++) {
			const struct attachment *a = &attachments[i];
			struct flow *flow = &flows->list[j];

			if (flow->netns != a->netns || flow->link.ifindex != a->ifindex)
				continue;
			flow->judged_out |= a->hook == HOOK_EGRESS;
			flow->judged_in |= a->hook != HOOK_EGRESS;
		}
}

static int flows_read(const struct watch *watch, struct flows *ret)
{
	int status = OK;

	for (unsigned int i = 0; !status && i < watch->count; i++) {
		const struct watched_netns *watched = &watch->list[i];
		struct link_facts after;

		if (!links_read_in(watched->netns, &after))
			continue;
		status = flows_add(ret, watched->netns, &watched->links, &after);
		link_facts_free(&after);
	}
	return status;
}

/*
 * Reads counters again, of the gate that has the name now: a resize or an upgrade meanwhile took
 * them to other maps. False: it is no longer there, or is another one.
 */
static bool judged_again(const struct patient *patient, struct judged *ret)
{
	char *messages = NULL, **before = messages_keep(&messages);
	struct gate gate = GATE_CLOSED;
	bool read = !gate_open(&gate, patient->gate.name, GATE_READ, NULL) && !judged_read(&gate, ret) &&
		    ret->all >= patient->before.all && ret->not_ip >= patient->before.not_ip;

	messages_keep(before);
	free(messages);
	gate_close(&gate);
	return read;
}

int watch_end(const struct watch *watch, const struct patients *patients, uint64_t span_ns,
		      uint64_t *ret_judged, struct findings *findings)
{
	struct timespec left = {
		.tv_sec = span_ns / NS_PER_SEC,
		.tv_nsec = span_ns % NS_PER_SEC,
	};
	struct flows flows = {.span_ns = span_ns};
	int status;

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left))
		;
	status = flows_read(watch, &flows);
	/* a device may have a gate that was not asked for */
	for (unsigned int i = 0; i < patients->count; i++)
		attachments_mark(patients->list[i].attachments, patients->list[i].count, &flows);
	attachments_mark(patients->others, patients->others_count, &flows);
	flows.holders_unseen = patients_hide(patients);
	for (unsigned int i = 0; !status && i < patients->count; i++) {
		const struct patient *patient = &patients->list[i];
		struct gate_traffic traffic = {
			.gate = patient->gate.name,
			.attachments = patient->attachments,
			.count = patient->count,
			.asked = patient->asked,
			.before = patient->before,
		};

		if (!judged_again(patient, &traffic.after))
			continue;
		findings->gate = traffic.gate;
		traffic_check(&traffic, &flows, findings);
		findings->gate = NULL;
		*ret_judged += traffic.after.all - traffic.before.all;
	}
	flows_free(&flows);
	return status;
}

void watch_free(struct watch *watch)
{
	for (unsigned int i = 0; i < watch->count; i++)
		link_facts_free(&watch->list[i].links);
	free(watch->list);
	*watch = (struct watch){0};
}
