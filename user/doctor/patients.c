// SPDX-License-Identifier: GPL-2.0
#include "doctor/patients.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attach/published.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/netns.h"
#include "gate/pins.h"
#include "migrate/open.h"

/* The arguments of gate_take(). */
struct taking {
	const struct asked *asked;
	struct patients *patients;
	struct findings *findings;
};

static bool is_asked_for(const struct asked *asked, const struct attachment *a)
{
	for (unsigned int i = 0; i < asked->count; i++)
		if (!strcmp(asked->devices[i], a->device) && a->netns == netns_current())
			return true;
	return !asked->count;
}

/* A gate whose links are not in sight can still be examined. */
static void attachments_take(const struct asked *asked, const struct seen *seen,
			     struct patient *patient)
{
	patient->attachments = calloc(seen->count + 1, sizeof(*patient->attachments));
	for (int wanted = 1; patient->attachments && wanted >= 0; wanted--) {
		for (unsigned int i = 0; i < seen->count; i++)
			if (is_asked_for(asked, &seen->all[i]) == wanted)
				patient->attachments[patient->count++] = seen->all[i];
		if (wanted)
			patient->asked = patient->count;
	}
}

static void attachments_look(const struct taking *taking, struct patient *patient)
{
	char *messages = NULL, **before = messages_keep(&messages);
	struct seen *seen = calloc(1, sizeof(*seen));
	int status = seen ? attachments_see(&patient->gate, seen)
				  : failure("cannot read the attachments: out of memory");

	messages_keep(before);
	patient->unseen = status || seen->sight == SIGHT_NONE;
	if (patient->unseen) {
		messages_tell(messages, FIND_UNSEEN, patient->gate.name, taking->findings);
		free(seen);
		return;
	}
	free(messages);
	if (seen->sight == SIGHT_PUBLISHED) {
		finding_add(taking->findings, FIND_UNSEEN, patient->gate.name,
			    "this process may not read where the gate is attached: what is told of "
			    "its devices was published %" PRIu64 " s ago",
			    seen->age_ns / NS_PER_SEC);
		finding_advise(taking->findings, "%s", messages_advice());
	}
	attachments_take(taking->asked, seen, patient);
	free(seen);
}

/* --- Gates that are not examined ------------------------------------------------------------ */

static void others_add(const struct attachment *attachments, unsigned int count,
		       struct patients *patients)
{
	for (unsigned int i = 0; i < count; i++) {
		if (array_grow(patients->others, patients->others_count, patients->others_room))
			patients->others[patients->others_count++] = attachments[i];
		else
			patients->others_unseen = true;
	}
}

/* Reads only where a gate is attached that was not asked for. */
static int other_take(const char *name, void *data)
{
	const struct taking *taking = data;
	struct patients *patients = taking->patients;
	struct seen *seen = calloc(1, sizeof(*seen));
	struct gate gate = GATE_CLOSED;

	if (!seen) {
		patients->others_unseen = true;
		return OK;
	}
	if (strcmp(name, taking->asked->gate)) {
		if (gate_open(&gate, name, GATE_READ, NULL) || attachments_see(&gate, seen) ||
		    seen->sight == SIGHT_NONE)
			patients->others_unseen = true;
		else
			others_add(seen->all, seen->count, patients);
	}
	gate_close(&gate);
	free(seen);
	return OK;
}

/* A gate of these that cannot be read makes no finding: the user has not named it. */
static void others_take(struct taking *taking)
{
	char *messages = NULL, **before = messages_keep(&messages);

	if (taking->asked->gate && gates_for_each(other_take, taking))
		taking->patients->others_unseen = true;
	messages_keep(before);
	free(messages);
}

/* --- Gates that are ------------------------------------------------------------------------- */

static void patient_free(struct patient *patient)
{
	gate_close(&patient->gate);
	free(patient->attachments);
}

static int gate_take(const char *name, void *data)
{
	struct patient patient = {.gate = GATE_CLOSED};
	const struct taking *taking = data;
	struct patients *patients = taking->patients;
	char *messages = NULL, **before = messages_keep(&messages);
	int status = gate_open(&patient.gate, name, GATE_READ, NULL);

	if (!status)
		status = judged_read(&patient.gate, &patient.before);
	messages_keep(before);
	patients->exist = true;
	taking->findings->gate = name;
	if (status) {
		messages_tell(messages, FIND_GATE_UNREAD, name, taking->findings);
		taking->findings->gate = NULL;
		patients->unread = true;
		patient_free(&patient);
		return OK;
	}
	free(messages);
	attachments_look(taking, &patient);
	taking->findings->gate = NULL;
	if (taking->asked->count && !patient.asked && !patient.unseen) {
		/* it has nothing to do with the devices */
		others_add(patient.attachments, patient.count, patients);
		patient_free(&patient);
		return OK;
	}
	if (array_grow(patients->list, patients->count, patients->room)) {
		patients->list[patients->count++] = patient;
		return OK;
	}
	taking->findings->failed = true;
	patient_free(&patient);
	return OK;
}

void patients_take(const struct asked *asked, struct patients *ret, struct findings *findings)
{
	struct taking taking = {asked, ret, findings};
	char *messages = NULL, **before = messages_keep(&messages);
	bool exists = true;
	int status = asked->gate ? gate_exists(asked->gate, &exists)
					 : gates_for_each(gate_take, &taking);

	if (!status && asked->gate && exists)
		status = gate_take(asked->gate, &taking);
	messages_keep(before);
	if (status) {
		ret->unread = true;
		ret->exist = true; /* as far as this process can tell */
		messages_tell(messages, FIND_GATE_UNREAD, asked->gate ?: BPFFS, findings);
		return;
	}
	free(messages);
	others_take(&taking);
}

void patients_free(struct patients *patients)
{
	for (unsigned int i = 0; i < patients->count; i++)
		patient_free(&patients->list[i]);
	free(patients->list);
	free(patients->others);
	*patients = (struct patients){0};
}

bool patients_hide(const struct patients *patients)
{
	bool hide = patients->unread || patients->others_unseen;

	for (unsigned int i = 0; i < patients->count; i++)
		hide |= patients->list[i].unseen;
	return hide;
}

bool patients_filter(const struct patients *patients, const char *device)
{
	const struct asked asked = {.devices = (char *const *)&device, .count = 1};

	if (patients->unread)
		return true;
	for (unsigned int i = 0; i < patients->count; i++) {
		if (patients->list[i].unseen)
			return true;
		for (unsigned int j = 0; j < patients->list[i].asked; j++)
			if (is_asked_for(&asked, &patients->list[i].attachments[j]))
				return true;
	}
	return false;
}
