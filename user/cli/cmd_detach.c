// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/attach.h"
#include "attach/attachment.h"
#include "attach/published.h"
#include "base/cleanup.h"
#include "base/netns.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/processes.h"
#include "cli/report.h"
#include "gate/pins.h"
#include "migrate/open.h"

/* The word for all devices of the gate. */
static const char *const all_devices = "all";

struct detach_args {
	struct operands devices;
	unsigned int hook; /* enum hook + 1; 0: any */
};

/* The attachments of the gate, and which of them the command names. */
struct detaching {
	struct attachment all[ATTACHMENTS_MAX];
	bool is_marked[ATTACHMENTS_MAX];
	unsigned int count;
};

static bool hook_is_meant(const struct detach_args *args, const struct attachment *a)
{
	return !args->hook || a->hook == args->hook - 1;
}

/* --- Names ---------------------------------------------------------------------------------- */

/* Returns whether the attachment's device has this name now, in this network namespace. */
static bool name_is_current(const struct attachment *a, const char *name)
{
	return a->program_id && a->netns == netns_current() && a->ifindex == if_nametoindex(name);
}

/*
 * Marks the attachments of a name; NULL: all. is_old: the name is that at the time of the
 * attachment, and a device that is gone matches from any namespace. Returns whether there is one.
 */
static bool mark_name(struct detaching *detaching, const struct detach_args *args, const char *name,
		      bool is_old)
{
	bool is_found = false;

	for (unsigned int i = 0; i < detaching->count; i++) {
		const struct attachment *a = &detaching->all[i];
		bool is_named = !name || (!is_old && name_is_current(a, name)) ||
				(is_old && !strcmp(a->pinned.device, name) &&
				 (!a->program_id || a->pinned.netns == netns_current()));

		detaching->is_marked[i] |= is_named && hook_is_meant(args, a);
		is_found |= is_named && hook_is_meant(args, a);
	}
	return is_found;
}

static int refuse_elsewhere(const struct gate *gate, const struct attachment *a, const char *hook)
{
	char netns[NETNS_NAME], option[NETNS_OPTION];
	bool is_named = netns_name(a->netns, netns);

	netns_option(a->netns, netns_home(), option);
	if (!*option && a->netns != netns_home())
		return error_add(ENODEV, "other-netns", a->device,
				 "it is attached in a network namespace that -n cannot name; "
				 "'sluice %sdetach all' detaches all devices of the gate",
				 gate_option(gate->name));
	return error_add(ENODEV, "other-netns", a->device,
			 "it is attached in network namespace '%s'; write 'sluice %s%sdetach "
			 "%s%s%s'",
			 is_named ? netns : "(unnamed)", option, gate_option(gate->name),
			 operand_typed(a->device), hook ? " hook " : "", hook ?: "");
}

/*
 * Reports why a name matches no attachment. The device may be on another hook: mode auto of hook
 * xdp uses hook ingress if the driver has no XDP.
 */
static int refuse_unattached(const struct gate *gate, const struct detach_args *args,
			     const struct detaching *detaching, const char *name)
{
	const char *hook = args->hook ? hook_names[args->hook - 1] : NULL;
	const char *option = gate_option(gate->name), *nearly;
	const struct attachment *elsewhere = NULL;

	for (unsigned int i = detaching->count; i--;) {
		const struct attachment *a = &detaching->all[i];

		if (hook && name_is_current(a, name))
			return error_add(ENODEV, "other-hook", name,
					 "it is not attached to gate '%s' on hook %s, but on hook "
					 "%s; see 'sluice %sstatus'",
					 gate->name, hook, hook_names[a->hook], option);
		if (a->program_id && a->netns != netns_current() && !strcmp(a->device, name) &&
		    hook_is_meant(args, a))
			elsewhere = a;
	}
	if (elsewhere)
		return refuse_elsewhere(gate, elsewhere, hook);
	nearly = keyword_nearly(&command_detach, name) ?: nearly_find(name, &all_devices, 1);
	if (nearly && !if_nametoindex(name))
		return error_misuse(
			"unexpected", "detach",
			"'%s' is unexpected; did you mean '%s'? See 'sluice help detach'", name,
			nearly);
	return error_add(ENODEV, "not-attached", name,
			 "it is not attached to gate '%s'%s%s; see 'sluice %sstatus'", gate->name,
			 hook ? " on hook " : "", hook ?: "", option);
}

/* Refuses a name without an attachment: a typo must not pass for success. */
static int mark(const struct gate *gate, const struct detach_args *args, bool is_all,
		struct detaching *detaching)
{
	if (is_all)
		mark_name(detaching, args, NULL, false);
	for (unsigned int i = 0; !is_all && i < args->devices.count; i++) {
		const char *name = args->devices.words[i];

		/* a device's old name counts only if no device has that name now */
		if (!mark_name(detaching, args, name, false) &&
		    !mark_name(detaching, args, name, true))
			return refuse_unattached(gate, args, detaching, name);
	}
	return 0;
}

/* --- Detaching ------------------------------------------------------------------------------ */

static void detached_print(const struct gate *gate, const struct attachment *a)
{
	const char *what = "detached from";

	if (!a->program_id)
		what = a->device_gone ? "is gone; removed from" : "lost its filter; removed from";
	print_attachment_of(gate, a, "detached", what);
	if (strcmp(a->device, a->pinned.device))
		print_text(", attached as %s", name_shown(a->pinned.device));
	print_text("\n");
	print_end();
}

/*
 * Detaches the marked attachments, and removes the pins of those that are gone. After a failure the
 * report has what was detached before it. Counts the attachments that stay.
 */
static int detach_marked(const struct gate *gate, const struct detaching *detaching,
			 unsigned int *ret_left)
{
	bool is_begun = false;
	int err = 0;

	*ret_left = 0;
	for (unsigned int i = 0; !err && i < detaching->count; i++) {
		const struct attachment *a = &detaching->all[i];

		if (!detaching->is_marked[i] && a->program_id) {
			++*ret_left;
			continue;
		}
		err = detach(gate, a);
		if (err)
			break;
		if (!is_begun)
			print_array(NULL);
		is_begun = true;
		detached_print(gate, a);
	}
	if (!err && !is_begun)
		print_array(NULL);
	print_end();
	return err;
}

static int detach_from(struct gate *gate, const struct detach_args *args, bool is_all)
{
	struct detaching detaching = {0};
	unsigned int left = 0;
	int err = attachments_read(gate, detaching.all, &detaching.count)
		  ?: mark(gate, args, is_all, &detaching)
		  ?: pins_check_writable(&gate->dir);

	if (err)
		return err;
	err = detach_marked(gate, &detaching, &left);
	if (left)
		attachments_publish(gate);
	if (err || left)
		return err;
	attachments_unpublish(gate);
	err = gate_dir_remove(gate);
	if (err)
		return err;
	kept_forget(gate->name);
	print_text("gate '%s': no device is left; its rules and counters are removed\n",
		   gate->name);
	return 0;
}

static int detach_run(const struct context *context, const void *data)
{
	const struct detach_args *args = data;
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	bool is_all = !strcmp(args->devices.words[0], all_devices);
	char first[GATE_NAME + 1], others[GATES_TEXT];
	int err;

	if (is_all && args->devices.count > 1)
		return unexpected(&command_detach, args->devices.words[1]);
	err = gate_open(&gate, context->gate, GATE_LOCK_ONLY, NULL)
		      ?: detach_from(&gate, args, is_all);
	if (err)
		return err;
	gate_close(&gate);
	kept_note(context->gate, KEPT_ATTACHMENTS, NULL);
	/* without -g, `all` may have been meant for all gates */
	if (is_all && !context->gate_given && !gates_beside(context->gate, first, others) &&
	    *others)
		error_notice("other-gates", NULL,
			     "detached only the devices of gate '%s'; other gates are %s; 'sluice "
			     "-g %s detach all'",
			     context->gate, others, first);
	return 0;
}

static const struct value_type given_hook = {
	.name = "xdp|ingress|egress",
	.parse = choice_parse,
	.words = hook_names,
	.word_count = HOOKS,
	.least = 1,
};

static const struct word detach_words[] = {
	{"all|DEV", OPERANDS, NULL, offsetof(struct detach_args, devices), NULL},
	{"hook", KEYWORD, &given_hook, offsetof(struct detach_args, hook),
	 "only from that hook. Default: from all"},
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
