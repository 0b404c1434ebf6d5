// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/attach.h"
#include "attach/attachment.h"
#include "attach/published.h"
#include "base/netns.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/kept.h"
#include "cli/report.h"
#include "gate/pins.h"
#include "migrate/open.h"

struct request {
	char **names; /* of devices, or `all` */
	int count;
	bool all;
	bool any_hook;
	enum hook hook;
};

/* Stands for all devices of the gate. */
static const char *const all_devices = "all";

struct detach_args {
	struct operands devices;
	const char *hook;
};

static int request_parse(const struct detach_args *args, struct request *ret)
{
	struct request request = {
		.names = args->devices.words,
		.count = args->devices.count,
		.any_hook = !args->hook,
		.all = !strcmp(args->devices.words[0], all_devices),
	};

	if (args->hook && !hook_parse(args->hook, &request.hook))
		return MISUSED;
	if (request.all && request.count > 1)
		return unexpected(&command_detach, request.names[1]);
	*ret = request;
	return OK;
}

/* Whether the attachment's device has this name now, in this network namespace. */
static bool name_is_current(const struct attachment *a, const char *name)
{
	return a->program_id && a->netns == netns_current() && a->ifindex == if_nametoindex(name);
}

/*
 * Whether it had this name when it was attached. A device that is gone matches from any namespace.
 */
static bool name_is_old(const struct attachment *a, const char *name)
{
	return !strcmp(a->pinned.device, name) &&
	       (!a->program_id || a->pinned.netns == netns_current());
}

/* Marks the attachments that a name of the request stands for. False: there is none. */
static bool mark_named(const struct request *request, const char *name,
		       bool (*is)(const struct attachment *a, const char *name),
		       const struct attachment *all, unsigned int count, bool *marked)
{
	bool found = false;

	for (unsigned int i = 0; i < count; i++) {
		if (!request->any_hook && all[i].hook != request->hook)
			continue;
		if (!request->all && !is(&all[i], name))
			continue;
		marked[i] = true;
		found = true;
	}
	return found;
}

static int refuse_elsewhere(const struct gate *gate, const struct attachment *a, const char *hook)
{
	const char *on = hook ? " hook " : "", *of = gate_option(gate->name);
	char netns[NETNS_NAME], option[NETNS_OPTION];
	bool named = netns_name(a->netns, netns);

	netns_option(a->netns, netns_home(), option);
	if (*option || a->netns == netns_home())
		return failure("%s is attached in network namespace '%s': write 'sluice %s%sdetach "
			       "%s%s%s'",
			       a->device, named ? netns : "(unnamed)", option, of,
			       operand_typed(a->device), on, hook ?: "");
	return failure("%s is attached in network namespace '%s', which -n cannot name: 'sluice "
		       "%sdetach all%s%s' detaches it, and all others of the gate",
		       a->device, named ? netns : "(unnamed)", of, on, hook ?: "");
}

/*
 * Says why a name matches no attachment. The device may be on another hook: mode auto of hook xdp
 * takes ingress where the driver has no XDP.
 */
static int refuse_unattached(const struct gate *gate, const struct request *request,
			     const char *name, const struct attachment *all, unsigned int count)
{
	const char *hook = request->any_hook ? NULL : hook_names[request->hook];
	const struct attachment *elsewhere = NULL;
	const char *nearly;

	for (unsigned int i = count; i--;)
		if (all[i].program_id && all[i].netns != netns_current() &&
		    !strcmp(all[i].device, name) &&
		    (request->any_hook || all[i].hook == request->hook))
			elsewhere = &all[i];
	for (unsigned int i = 0; hook && i < count; i++)
		if (name_is_current(&all[i], name))
			return failure(
				"%s is not attached to gate '%s' on hook %s, but on hook %s: "
				"see 'sluice %sstatus'",
				name, gate->name, hook, hook_names[all[i].hook],
				gate_option(gate->name));
	if (elsewhere)
		return refuse_elsewhere(gate, elsewhere, hook);
	nearly = keyword_nearly(&command_detach, name) ?: nearly_find(name, &all_devices, 1);
	if (nearly && !if_nametoindex(name))
		return misuse("detach: '%s' is unexpected: did you mean '%s'? See 'sluice help "
			      "detach'",
			      name, nearly);
	return failure("%s is not attached to gate '%s'%s%s: see 'sluice %sstatus'", name,
		       gate->name, hook ? " on hook " : "", hook ?: "", gate_option(gate->name));
}

/* Refuses a name without an attachment: a typo must not pass for success. */
static int mark(const struct gate *gate, const struct request *request,
		const struct attachment *all, unsigned int count, bool *marked)
{
	for (int i = 0; i < request->count; i++) {
		const char *name = request->names[i];

		/* a device's old name counts only where no device has that name now */
		if (!mark_named(request, name, name_is_current, all, count, marked) &&
		    !mark_named(request, name, name_is_old, all, count, marked) && !request->all)
			return refuse_unattached(gate, request, name, all, count);
	}
	return OK;
}

static void detached_report(const struct gate *gate, const struct attachment *a, json_t *list)
{
	const char *what = "detached from";

	if (list) {
		json_t *object = attachment_json(a);

		json_object_set_new(object, "gate", json_string(gate->name));
		json_object_set_new(object, "state", json_string("detached"));
		json_array_append_new(list, object);
		return;
	}
	if (!a->program_id)
		what = a->device_gone ? "is gone; removed from" : "lost its filter; removed from";
	printf("%s: %s gate '%s', hook %s", name_shown(a->device), what, gate->name,
	       hook_names[a->hook]);
	if (strcmp(a->device, a->pinned.device))
		printf(", attached as %s", name_shown(a->pinned.device));
	putchar('\n');
}

/*
 * Detaches the marked attachments and removes the pins of those that are gone. Counts those that
 * stay.
 */
static int detach_marked(const struct gate *gate, const struct attachment *all, unsigned int count,
			 const bool *marked, json_t *list, unsigned int *ret_left)
{
	int status = OK;

	*ret_left = 0;
	for (unsigned int i = 0; !status && i < count; i++) {
		if (!marked[i] && all[i].program_id) {
			++*ret_left;
			continue;
		}
		status = detach(gate, &all[i]);
		if (status)
			break;
		detached_report(gate, &all[i], list);
	}
	return status;
}

static int detach_from(struct gate *gate, const struct request *request, json_t *list)
{
	struct attachment all[ATTACHMENTS_MAX];
	bool marked[ATTACHMENTS_MAX] = {false};
	unsigned int count, left = 0;
	int status = attachments_read(gate, all, &count);

	if (!status)
		status = mark(gate, request, all, count, marked);
	if (!status)
		status = pins_check_writable(&gate->dir);
	if (!status)
		status = detach_marked(gate, all, count, marked, list, &left);
	if (left)
		attachments_publish(gate);
	if (status || left)
		return status;
	attachments_unpublish(gate);
	status = gate_dir_remove(gate);
	if (!status)
		kept_forget(gate->name);
	if (!status && !list)
		printf("gate '%s': no device is left; its rules and counters are removed\n",
		       gate->name);
	return status;
}

/* Without -g, `all` may have been meant for all gates. */
static void others_note(const char *gate)
{
	char first[GATE_NAME + 1], others[GATES_TEXT];

	if (!gates_beside(gate, first, others) && *others)
		note("detached only the devices of gate '%s'; other gates are %s: 'sluice -g %s "
		     "detach all'",
		     gate, others, first);
}

static int detach_run(const struct context *context, const void *args)
{
	json_t *list = context->json ? json_array() : NULL;
	struct gate gate = GATE_CLOSED;
	struct request request = {0};
	int status = request_parse(args, &request);

	if (!status)
		status = gate_open(&gate, context->gate, GATE_LOCK_ONLY, NULL);
	if (!status)
		status = detach_from(&gate, &request, list);
	gate_close(&gate);
	if (!status)
		kept_note_attachments(context->gate);
	if (!status && request.all && !context->gate_given)
		others_note(context->gate);
	if (list && (!status || json_array_size(list)))
		return json_print(list) ?: status; /* with a failure: what was detached before it */
	json_decref(list);
	return status;
}

static const struct word detach_words[] = {
	{"all|DEV", OPERANDS, NULL, offsetof(struct detach_args, devices), NULL},
	{"hook", KEYWORD, VALUE_TEXT("xdp|ingress|egress"), offsetof(struct detach_args, hook),
	 "only from that hook; else from all"},
};

static const char detach_details[] =
	"The rules, counters and pins of a gate are removed with its last device. all: all\n"
	"devices of one gate, main without -g; other gates stay, and are named.";

const struct command command_detach = {
	.name = "detach",
	.brief = "stop filtering",
	.details = detach_details,
	.question = "which device, or all?",
	COMMAND_WORDS(detach_words, struct detach_args),
	.run = detach_run,
};
