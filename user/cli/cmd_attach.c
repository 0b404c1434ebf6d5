// SPDX-License-Identifier: GPL-2.0
/* The commands attach, detach and upgrade, which change the devices and the program of a gate. */
#include "attach/attach.h"
#include "attach/published.h"
#include "attach/shaping.h"
#include "cli/command.h"
#include "events/stream.h"
#include "gate/changed.h"
#include "gate/maps.h"
#include "gate/pins.h"
#include "keep/lock_file.h"
#include "sharing/share_state.h"

/* --- Reports -------------------------------------------------------------------------------- */

void print_attachment_of(const struct gate *gate, const struct attachment *a, const char *state,
			 const char *what)
{
	print_object(NULL);
	print_attachment(a, state);
	print_string("gate", NULL, gate->name);
	print_text("%s: %s gate '%s', hook %s", name_shown(a->device), what, gate->name,
		   hook_names[a->hook]);
}

/* --- attach --------------------------------------------------------------------------------- */

struct attach_args {
	struct operands devices;
	unsigned int hook;	/* enum hook */
	unsigned int mode;	/* enum mode */
	bool chain;		/* the same as `mode chain` */
	struct array_slot slot; /* mode array */
	unsigned int priority;	/* mode libxdp: run priority; 0: the default */
	bool no_fq;		/* accept a device without qdisc fq although a limit shapes */
	uint32_t size[SIZES];
};

/* A device on the command line, and its attachment. */
struct attaching {
	struct netdev device;
	struct attachment made;
	bool existed; /* the device was attached before this command */
};

/*
 * Finds the devices that the command line names. If a device does not exist, and its name resembles
 * a keyword, the error suggests this keyword.
 */
static int devices_find(const struct operands *names, struct attaching all[ATTACHMENTS_MAX])
{
	if (names->count > ATTACHMENTS_MAX)
		return error_misuse("too-many", "attach",
				    "at most %d devices can be attached; name fewer",
				    ATTACHMENTS_MAX);
	for (unsigned int i = 0; i < names->count; i++) {
		const char *name = names->words[i], *nearly = keyword_nearly(&command_attach, name);
		int err;

		if (!i || if_nametoindex(name))
			err = device_find(name, &all[i].device);
		else if (nearly)
			err = error_misuse("no-device", NULL,
					   "there is no device '%s' in this network namespace; did "
					   "you mean '%s'? See 'sluice help attach'",
					   name, nearly);
		else
			err = error_add(ENODEV, "no-device", NULL,
					"'%s' is neither a device in this network namespace nor a "
					"keyword; see 'ip link' and 'sluice help attach'",
					name);
		if (err)
			return err;
	}
	return 0;
}

/*
 * Returns an error if the command line specifies a size that differs from the size of an existing
 * gate, because attach cannot resize a gate.
 */
static int attach_check_sizes(const struct gate *gate, const uint32_t size[SIZES])
{
	struct gate_sizes has;
	int err = gate_sizes_read(gate, &has);

	for (unsigned int i = 0; !err && i < SIZES; i++)
		if (size[i] && size[i] != size_specified(&has, i))
			return error_misuse("other-size", NULL,
					    "gate '%s' has %s %u, not %u; only 'apply FILE "
					    "--resize' changes a size",
					    gate->name, size_names[i], size_specified(&has, i),
					    size[i]);
	return err;
}

/*
 * Attaches all devices. If any limit shapes, first checks that all devices can delay packets. On
 * failure, detaches the devices that this call has attached.
 */
static int attach_all(const struct gate *gate, const struct attach_args *args,
		      struct attaching *all)
{
	_cleanup_(programs_close) struct programs programs = PROGRAMS_CLOSED;
	struct shaping shaping;
	unsigned int i;
	int err = shaping_read(gate, &shaping);

	for (i = 0; !err && shaping.any && i < args->devices.count; i++) {
		struct attachment wanted = attachment_of(&all[i].device, args->hook);

		err = attach_choose_hook(&all[i].device, args->mode, false, &wanted.hook)
			      ?: shaping_check_new(gate, &shaping, &wanted, args->no_fq);
	}
	if (err)
		return err;
	for (i = 0; !err && i < args->devices.count; i++) {
		struct way way = {args->hook, args->mode, args->slot, args->priority};

		err = attach_choose_hook(&all[i].device, args->mode, true, &way.hook)
			      ?: attach_device(gate, &programs, &all[i].device, &way, false,
					       &all[i].made, &all[i].existed);
	}
	if (err)
		for (i--; i--;)
			if (!all[i].existed)
				detach(gate, &all[i].made);
	return err;
}

/* Prints the new attachments, and warns of their side effects. */
static int attached_print(const struct gate *gate, unsigned int count, const struct attaching *all)
{
	bool has_rules = gate->state->hosts || gate->state->prefixes;
	struct attachment made[ATTACHMENTS_MAX];
	unsigned int made_count = 0;
	int err;

	for (unsigned int i = 0; i < count; i++)
		if (!all[i].existed)
			made[made_count++] = all[i].made;
	err = warn_attached(gate, made, made_count);
	if (err)
		return err;
	print_array(NULL);
	for (const struct attaching *one = all; one < all + count; one++) {
		print_attachment_of(gate, &one->made, NULL,
				    one->existed ? "already attached to" : "attached to");
		print_bool("was_attached", one->existed);
		print_text(", mode %s%s\n", mode_names[one->made.mode],
			   has_rules ? "" : "; no rule yet: it counts, and drops nothing");
		print_end();
	}
	print_end();
	return 0;
}

/* Sets the mode that words `chain` and `array` imply. Returns an error if the words contradict. */
static int mode_choose(struct attach_args *args)
{
	enum mode mode = args->mode;
	int err;

	if (args->chain && mode != MODE_AUTO && mode != MODE_CHAIN)
		return error_misuse("two-modes", "chain",
				    "is a mode, and contradicts mode %s; write one of them",
				    mode_names[mode]);
	if (args->chain)
		mode = MODE_CHAIN;
	err = mode_check(args->hook, &args->slot, args->priority, &mode);
	args->mode = mode;
	if (!err && mode == MODE_ARRAY && args->devices.count > 1)
		return error_misuse("one-slot", "attach",
				    "a slot has room for one program; name one device");
	return err;
}

static int attach_run(const struct context *context, const void *data)
{
	struct attach_args given = *(const struct attach_args *)data, *args = &given;
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	struct attaching all[ATTACHMENTS_MAX];
	struct gate_sizes sizes = {0};
	int err;

	err = mode_choose(args);
	if (err)
		return err;
	for (unsigned int i = 0; i < SIZES; i++)
		if (args->size[i])
			size_set(&sizes, i, args->size[i]);
	err = devices_find(&args->devices, all)
		      ?: gate_open(&gate, context->gate, GATE_MAKE, &sizes);
	if (err)
		return err;
	if (!gate.made)
		err = attach_check_sizes(&gate, args->size);
	if (!err)
		gate.state->sizes_stated |= sizes_bits(&sizes);
	err = err ?: attach_all(&gate, args, all);
	if (err) {
		gate_undo(&gate);
		return err;
	}
	attachments_publish(&gate);
	return attached_print(&gate, args->devices.count, all);
}

#define SIZE_FIELD(which) offsetof(struct attach_args, size[which])

static const struct word attach_words[] = {
	{"DEV", OPERANDS, NULL, offsetof(struct attach_args, devices), NULL},
	{"hook", KEYWORD, &value_hook, offsetof(struct attach_args, hook),
	 "xdp (default): in the driver, with the least CPU time; ingress or egress: in TC"},
	{"mode", KEYWORD, &value_mode, offsetof(struct attach_args, mode),
	 "for xdp: auto (default), native, generic, chain or libxdp. auto uses native, or libxdp\n"
	 "if the device has its dispatcher; if the driver lacks XDP, and on a tap, it uses hook\n"
	 "ingress, and on an ifb hook egress. In mode generic, a packet that GRO merged counts as\n"
	 "one. For ingress and egress: auto (default), tcx or clsact"},
	{"chain", KEYWORD, NULL, offsetof(struct attach_args, chain),
	 "mode chain: take the device over from another XDP program, run that program on the\n"
	 "packets that pass, and attach it again on detach"},
	{"array", KEYWORD, &value_slot, offsetof(struct attach_args, slot),
	 "be a program in a slot of a pinned program array, from which the XDP program of the\n"
	 "device calls other programs; go on to the next slots with the packets that pass"},
	{"priority", KEYWORD, &value_priority, offsetof(struct attach_args, priority),
	 "for mode libxdp: run priority, 50 by default; components with a lower number run first"},
	{"no-fq", KEYWORD, NULL, offsetof(struct attach_args, no_fq),
	 "attach although a limit shapes, and the device lacks the qdisc fq"},
	{"sources", KEYWORD, &value_size, SIZE_FIELD(SIZE_SOURCES),
	 "number of states, one for each source and limit; 262144 by default, 91 to 181 bytes\n"
	 "each, allocated at once"},
	{"buckets", KEYWORD, &value_size, SIZE_FIELD(SIZE_BUCKETS),
	 "number of entries of each of the maps buckets4 and buckets6: sources that CPUs serve\n"
	 "from per-CPU buckets, and count for 'sluice sources'; 16384 by default with up to 6\n"
	 "CPUs. Together they take 448 bytes for each entry and CPU, and 168 for each entry"},
	{"policies", KEYWORD, &value_size, SIZE_FIELD(SIZE_POLICIES),
	 "number of prefixes that have limits"},
	{"hosts", KEYWORD, &value_size, SIZE_FIELD(SIZE_HOSTS),
	 "number of rules for single addresses, in each family"},
	{"prefixes", KEYWORD, &value_size, SIZE_FIELD(SIZE_PREFIXES),
	 "number of rules for shorter prefixes"},
};

const struct command command_attach = {
	.name = "attach",
	.brief = "filter what a device receives or sends",
	.details =
		"Makes the gate if it does not exist. As long as the gate has no rule, packets\n"
		"are counted, and none is dropped. sources, buckets, policies, hosts and prefixes\n"
		"are the sizes of a new gate: 65536, 64k or 4m; only 'sluice apply FILE --resize'\n"
		"resizes a gate that exists. Without them, policies, hosts and prefixes start\n"
		"small, and grow with the rules. 'sluice status' prints the memory of a gate.",
	.question = "which device?",
	COMMAND_WORDS(attach_words, struct attach_args),
	.run = attach_run,
};

/* --- detach --------------------------------------------------------------------------------- */

/* operand that selects all devices of the gate */
static const char *const all_devices = "all";

struct detach_args {
	struct operands devices;
	unsigned int hook; /* enum hook, plus 1; 0 selects all hooks */
};

/* The attachments of a gate. is_marked: detach this attachment. */
struct detaching {
	const struct detach_args *args;
	struct attachment all[ATTACHMENTS_MAX];
	bool is_marked[ATTACHMENTS_MAX];
	unsigned int count;
};

/* Returns whether the command line selects the hook of an attachment. */
static bool hook_is_meant(const struct detach_args *args, const struct attachment *a)
{
	return !args->hook || a->hook == args->hook - 1;
}

/* Returns whether a device that is now named `name`, in the current netns, has this attachment. */
static bool name_is_current(const struct attachment *a, const char *name)
{
	return a->program_id && a->netns == netns_current() && a->ifindex == if_nametoindex(name);
}

/*
 * Marks the attachments of the device with this name. Returns whether it marked any. is_old:
 * compare the name that the device had when it was attached. The attachment of a device that is
 * gone is found from any network namespace.
 */
static bool mark_name(struct detaching *detaching, const char *name, bool is_old)
{
	bool is_found = false;

	for (unsigned int i = 0; i < detaching->count; i++) {
		const struct attachment *a = &detaching->all[i];
		bool is_old_name = !strcmp(a->pinned.device, name) &&
				   (!a->program_id || a->pinned.netns == netns_current());

		if ((is_old ? is_old_name : name_is_current(a, name)) &&
		    hook_is_meant(detaching->args, a))
			detaching->is_marked[i] = is_found = true;
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
				 "it is attached in a network namespace that -n cannot name; to "
				 "detach all devices of the gate: 'sluice %sdetach all'",
				 gate_option(gate->name));
	return error_add(ENODEV, "other-netns", a->device,
			 "it is attached in network namespace '%s'; to detach it: 'sluice "
			 "%s%sdetach %s%s%s'",
			 is_named ? netns : "(unnamed)", option, gate_option(gate->name),
			 operand_typed(a->device), hook ? " hook " : "", hook ?: "");
}

/*
 * Adds the error that no device with this name is attached, and returns the errno. If the device is
 * attached on another hook, the error names that hook, because mode auto of hook xdp uses hook
 * ingress if native XDP fails.
 */
static int refuse_unattached(const struct gate *gate, const struct detaching *detaching,
			     const char *name)
{
	const struct detach_args *args = detaching->args;
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

/*
 * Detaches the marked attachments. If a device or a filter is gone, removes its pin. Stores the
 * number of remaining attachments. Prints each attachment at once, because detaching the next may
 * fail.
 */
static int detach_marked(const struct gate *gate, const struct detaching *detaching,
			 unsigned int *ret_left)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < detaching->count; i++) {
		const struct attachment *a = &detaching->all[i];
		const char *what = a->program_id    ? "detached from"
				   : a->device_gone ? "is gone; removed from"
						    : "lost its filter; removed from";

		if (!detaching->is_marked[i] && a->program_id) {
			++*ret_left;
			continue;
		}
		err = detach(gate, a);
		if (err)
			break;
		if (!print_is_begun())
			print_array(NULL);
		print_attachment_of(gate, a, "detached", what);
		if (strcmp(a->device, a->pinned.device))
			print_text(", attached as %s", name_shown(a->pinned.device));
		print_text("\n");
		print_end();
	}
	if (!err && !print_is_begun())
		print_array(NULL);
	print_end();
	return err;
}

int gate_remove(struct gate *gate)
{
	int err;

	attachments_unpublish(gate);
	err = gate_dir_remove(gate);
	if (err)
		return err;
	lock_file_remove(LOCK_KEEP, gate->name);
	share_state_forget(gate->name);
	gate_change_forget(gate->name);
	events_server_forget(gate->name);
	return 0;
}

/*
 * Detaches the attachments that the command line selects. If no attachment is left, removes the
 * gate. Returns an error if no attachment has a typed name.
 */
static int detach_from(struct gate *gate, const struct detach_args *args, bool is_all)
{
	struct detaching detaching = {.args = args};
	unsigned int left = 0;
	int err = attachments_read(gate, detaching.all, &detaching.count);

	if (err)
		return err;
	for (unsigned int i = 0; is_all && i < detaching.count; i++)
		detaching.is_marked[i] = hook_is_meant(args, &detaching.all[i]);
	for (unsigned int i = 0; !is_all && i < args->devices.count; i++) {
		const char *name = args->devices.words[i];

		/* if no device has this name now, compare the names at the time of attaching */
		if (!mark_name(&detaching, name, false) && !mark_name(&detaching, name, true))
			return refuse_unattached(gate, &detaching, name);
	}
	err = pins_check_writable(&gate->dir) ?: detach_marked(gate, &detaching, &left);
	if (left)
		attachments_publish(gate);
	if (err || left)
		return err;
	err = gate_remove(gate);
	if (err)
		return err;
	print_text("gate '%s': no device is left; its rules and counters are removed\n",
		   gate->name);
	return 0;
}

/*
 * Adds the error that the gate does not exist, and returns the errno. Does not suggest `attach`,
 * because the user wants to detach.
 */
static int refuse_no_gate(const struct context *context)
{
	struct gate_names others;

	if (gates_list(context->gate, &others) || !others.count)
		return error_add(ENOENT, "no-gate", NULL,
				 "there is no gate '%s'; nothing to detach", context->gate);
	return error_add(ENOENT, "no-gate", NULL,
			 "there is no gate '%s', so there is nothing to detach; the gates are %s: "
			 "'sluice -g %s detach ...'",
			 context->gate, others.text, others.first);
}

static int detach_run(const struct context *context, const void *data)
{
	const struct detach_args *args = data;
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	bool is_all = !strcmp(args->devices.words[0], all_devices);
	struct gate_names others;
	const struct sl_error *error;
	int err;

	if (is_all && args->devices.count > 1)
		return unexpected(&command_detach, args->devices.words[1]);
	err = gate_open(&gate, context->gate, GATE_LOCK_ONLY, NULL)
		      ?: detach_from(&gate, args, is_all);
	error = err ? error_last(0) : NULL;
	if (error && !strcmp(error->id, "no-gate")) {
		error_drop(0);
		return refuse_no_gate(context);
	}
	if (err)
		return err;
	gate_close(&gate);
	kept_note(context->gate, KEPT_ATTACHMENTS, NULL);
	/*
	 * without -g, name the other gates, because a user may expect that `all` includes their
	 * devices
	 */
	if (is_all && !context->gate_given && !gates_list(context->gate, &others) && others.count)
		error_notice(
			"other-gates", NULL,
			"detached only the devices of gate '%s'; other gates are %s; to detach "
			"their devices: 'sluice -g %s detach all'",
			context->gate, others.text, others.first);
	return 0;
}

static const struct word detach_words[] = {
	{"all|DEV", OPERANDS, NULL, offsetof(struct detach_args, devices), NULL},
	{"hook", KEYWORD, &value_given_hook, offsetof(struct detach_args, hook),
	 "detach only from this hook. Default: from all hooks"},
};

const struct command command_detach = {
	.name = "detach",
	.brief = "stop filtering a device",
	.details = "Detaching the last device of a gate removes the gate, with its rules and\n"
		   "counters. all: all devices of the gate, main without -g; other gates stay.",
	.question = "which device, or all?",
	COMMAND_WORDS(detach_words, struct detach_args),
	.run = detach_run,
};

/* --- upgrade -------------------------------------------------------------------------------- */

static int upgrade_run(const struct context *context, const void *args)
{
	_cleanup_(replacements_close) struct replacements replacements = {.count = 0};
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	int err = gate_open(&gate, context->gate, GATE_CHANGE, NULL)
			  ?: programs_replace(&gate, &gate, &replacements);

	(void)args;
	if (err)
		return err;
	attachments_publish(&gate);
	print_array(NULL);
	for (unsigned int i = 0; i < replacements.count; i++) {
		const struct attachment *a = &replacements.one[i].attachment;

		print_row(NULL);
		print_attachment(a, NULL);
		print_string("gate", NULL, gate.name);
		print_text("%s: hook %s:", name_shown(a->device), hook_names[a->hook]);
		print_number("program_id_before", " program %" PRIu64, replacements.one[i].before);
		print_text(" -> %u\n", a->program_id);
		print_end();
	}
	print_end();
	if (!replacements.count)
		print_text("gate '%s': nothing to upgrade, because no device is attached\n",
			   gate.name);
	return 0;
}

const struct command command_upgrade = {
	.name = "upgrade",
	.brief = "replace the BPF program of a running gate by this version's",
	.details =
		"Rules, buckets and counters stay, and no packet passes unfiltered. If an upgrade\n"
		"was interrupted, run it again. Refused if a version with another schema made the\n"
		"gate.",
	.run = upgrade_run,
};
