// SPDX-License-Identifier: GPL-2.0
/* The commands apply and keep, which configure a gate by a rules file, once or as a service. */
#include "cli/command.h"
#include "config/config.h"
#include "gate/maps.h"
#include "keep/apply.h"
#include "keep/keep.h"

struct apply_args {
	const char *file;
	bool resize;
	bool no_fq;
};

/* --- Report --------------------------------------------------------------------------------- */

static const struct {
	const char *key, *words;
} effects[EFFECTS] = {
	[POLICIES_ADDED] = {"policies_added", "added"},
	[POLICIES_CHANGED] = {"policies_changed", "changed"},
	[POLICIES_DELETED] = {"policies_deleted", "deleted"},
	[NOW_DENIED] = {"denied", "denied"},
	[NOW_ALLOWED] = {"allowed", "allowed"},
	[NO_LONGER_DENIED] = {"no_longer_denied", "no longer denied"},
	[NO_LONGER_ALLOWED] = {"no_longer_allowed", "no longer allowed"},
};

/* Formats what a rules file changed, such as "2 policies added, 1 changed; 3 denied". */
static void effects_print(const struct apply *change, const char *separator)
{
	bool has_noun = false;

	for (unsigned int i = 0; i < EFFECTS; i++) {
		unsigned int count = change->effects[i];
		const char *noun = plural(count, " policy", " policies");

		print_number(effects[i].key, NULL, count);
		if (i == NOW_DENIED && has_noun)
			separator = "; ";
		if (!count)
			continue;
		print_text("%s%u%s %s", separator, count,
			   i > POLICIES_DELETED || has_noun ? "" : noun, effects[i].words);
		has_noun = i <= POLICIES_DELETED;
		separator = ", ";
	}
}

/*
 * Prints the devices that `apply` attached. If `detaches` is set, prints the devices that it
 * detached.
 */
static void placings_print(const char *key, const struct gate *gate, const struct apply *change,
			   bool detaches)
{
	print_array(key);
	for (unsigned int i = 0; i < change->placings.count; i++) {
		const struct placing *placing = &change->placings.list[i];
		const struct attachment *a = &placing->attachment;

		if (placing->detaches != detaches)
			continue;
		print_attachment_of(gate, a, NULL, detaches ? "detached from" : "attached to");
		print_text(", mode %s\n", mode_names[a->mode]);
		print_end();
	}
	print_end();
}

static void apply_print(const struct gate *gate, const struct apply *change, uint64_t trial_ns)
{
	bool has_rules = change->has_rules;
	bool changed = has_rules || change->resized;

	print_object(NULL);
	print_string("gate", NULL, gate->name);
	print_number("generation", NULL, gate->state->generation);
	print_bool("changed", changed || change->placings.count);
	print_bool("resized", change->resized);
	print_known("trial_ms", NULL, trial_ns, trial_ns / NS_PER_MS);
	if (changed)
		print_text("gate '%s': %s", gate->name, change->resized ? "resized" : "");
	else if (!change->placings.count)
		print_text("gate '%s': nothing to change\n", gate->name);
	effects_print(change, change->resized ? "; " : "");
	if (has_rules && !change->wanted.count)
		print_text("%sonly lists without entries", change->resized ? "; " : "");
	if (has_rules)
		print_text("; in force as generation %u", gate->state->generation);
	if (changed)
		print_text("\n");
	placings_print("attached", gate, change, false);
	placings_print("detached", gate, change, true);
	print_end();
}

/* Warns if the gate has no attached device. Does not warn if attachments cannot be read. */
static void warn_unattached(const struct gate *gate, const struct places *places)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count = 0, mark = error_count();
	int err = attachments_read(gate, all, &count);

	error_drop(mark);
	for (unsigned int i = 0; !err && i < count; i++)
		err = all[i].program_id > 0;
	if (err)
		return;
	if (!places->specified)
		error_notice(
			"not-attached", NULL,
			"gate '%s' filters nothing yet, because no device is attached; attach one: "
			"'sluice %s-g %s attach DEV'",
			gate->name, netns_typed(), gate->name);
	else if (!places->count)
		error_notice("not-attached", NULL,
			     "gate '%s' filters nothing, because 'attach' in the file names no "
			     "device",
			     gate->name);
	else
		error_notice("not-attached", NULL,
			     "gate '%s' filters nothing yet, because no device of the file exists; "
			     "apply the file again when a device exists, or let 'sluice keep' wait "
			     "for it",
			     gate->name);
}

static int apply_run(const struct context *context, const void *data)
{
	const struct apply_args *args = data;
	const struct apply_may may = {.resize = args->resize, .lack_fq = args->no_fq};
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	_cleanup_(config_free) struct config config = {0};
	_cleanup_(apply_free) struct apply change = {0};
	struct attachment made[ATTACHMENTS_MAX];
	int err = config_read(args->file, &config)
			  ?: gate_open(&gate, context->gate, GATE_MAKE, &config.sizes);

	if (err)
		return err;
	err = apply_prepare(&gate, &config, &may, &change);
	if (!err)
		err = context->trial_ns ? change_try(&gate, &change, context->trial_ns)
					: apply_make(&gate, &change);
	if (err) {
		gate_undo(&gate);
		return err;
	}
	warn_rules(&gate, change.before.rules, change.wanted.rules, change.wanted.count);
	warn_shadowed(&gate, &change.shadowed, true);
	if (!context->trial_ns)
		ssh_warn(&gate);
	err = warn_attached(&gate, made, placings_made(&change.placings, made));
	if (err)
		return err;
	apply_print(&gate, &change, context->trial_ns);
	warn_unattached(&gate, &config.places);
	kept_note(context->gate, KEPT_FILE, args->file);
	return 0;
}

static const struct word apply_words[] = {
	{"FILE", OPERAND, VALUE_TEXT("FILE"), offsetof(struct apply_args, file), NULL},
	{"no-fq", KEYWORD, NULL, offsetof(struct apply_args, no_fq),
	 "allow shape although a device lacks the qdisc fq, so that no packet is delayed yet"},
	{"--resize", OPTION, NULL, offsetof(struct apply_args, resize),
	 "also resize the maps of the gate to the sizes in the file"},
	WORD_CONFIRM,
};

const struct command command_apply = {
	.name = "apply",
	.brief = "put the rules of a file into force",
	.details =
		"Makes the gate if it does not exist. The devices that the file lists under\n"
		"'attach' are attached, and all others are detached. The file is YAML or JSON, as\n"
		"'sluice dump' prints it; - is standard input. It is applied in one step, or not\n"
		"at all if it has errors. Rules that are not in the file are removed. See\n"
		"sluice-rules(5).",
	.question = "which file?",
	COMMAND_WORDS(apply_words, struct apply_args),
	.run = apply_run,
};

/* --- keep ----------------------------------------------------------------------------------- */

static const struct value_type interval_time = VALUE_TIME(NS_PER_SEC, 86400 * NS_PER_SEC);

static int keep_command_run(const struct context *context, const void *data)
{
	struct keep_args args = *(const struct keep_args *)data;

	args.gate = context->gate;
	if (!strcmp(args.file, "-"))
		return error_misuse(
			"no-file", "keep",
			"it reads the rules file repeatedly, so the file cannot be standard input; "
			"write its name");
	return keep_run(&args);
}

static const struct word keep_words[] = {
	{"FILE", OPERAND, VALUE_TEXT("FILE"), offsetof(struct keep_args, file), NULL},
	{"--state", OPTION, VALUE_TEXT("FILE"), offsetof(struct keep_args, state),
	 "save entries that commands add in this file, so that they outlive the gate and a reboot"},
	{"--interval", OPTION, &interval_time, offsetof(struct keep_args, interval_ns),
	 "also reread list files every TIME, 1s to 1d: for file systems without inotify"},
	{"--resize", OPTION, NULL, offsetof(struct keep_args, resize),
	 "a reload also resizes the maps of the gate to the sizes in the file"},
};

const struct command command_keep = {
	.name = "keep",
	.brief = "run as a service that keeps a gate as a file specifies",
	.details = "Applies the file, and keeps running: it attaches the devices of the file\n"
		   "whenever they appear, and rereads list files when they change. SIGHUP applies\n"
		   "the file again; a file with errors changes nothing. SIGTERM ends the process.\n"
		   "Packets are filtered without this process as well.",
	.question = "which file?",
	COMMAND_WORDS(keep_words, struct keep_args),
	.run = keep_command_run,
};
