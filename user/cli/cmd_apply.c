// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/attachment.h"
#include "base/clock.h"
#include "base/netns.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/confirm.h"
#include "cli/kept.h"
#include "cli/report.h"
#include "cli/warnings.h"
#include "config/config.h"
#include "gate/gate.h"
#include "gate/gate_make.h"
#include "keep/apply.h"
#include "migrate/open.h"

struct apply_args {
	const char *file;
	bool resize;
	bool no_fq;
};

/* --- Report --------------------------------------------------------------------------------- */

/* Prints "2 policies added, 1 changed": only the first count has the noun. */
static void policies_print(const struct apply *change, const char **separator)
{
	static const char *const words[] = {
		[POLICIES_ADDED] = "added",
		[POLICIES_CHANGED] = "changed",
		[POLICIES_DELETED] = "deleted",
	};
	const char *noun = NULL;

	for (unsigned int i = POLICIES_ADDED; i <= POLICIES_DELETED; i++) {
		unsigned int count = change->effects[i];

		if (!count)
			continue;
		if (noun)
			printf(", %u %s", count, words[i]);
		else
			printf("%s%u %s %s", *separator, count, plural(count, "policy", "policies"),
			       words[i]);
		noun = words[i];
		*separator = "; ";
	}
}

static void entries_print(const struct apply *change, const char **separator)
{
	static const char *const words[] = {
		[NOW_DENIED] = "denied",
		[NOW_ALLOWED] = "allowed",
		[NO_LONGER_DENIED] = "no longer denied",
		[NO_LONGER_ALLOWED] = "no longer allowed",
	};

	for (unsigned int i = NOW_DENIED; i < EFFECTS; i++) {
		if (!change->effects[i])
			continue;
		printf("%s%u %s", *separator, change->effects[i], words[i]);
		*separator = ", ";
	}
}

static json_t *placings_json(const struct apply *change, bool detached)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < change->placings.count; i++)
		if (change->placings.list[i].detaches == detached)
			json_array_append_new(
				list, attachment_json(&change->placings.list[i].attachment));
	return list;
}

static void placings_print(const struct gate *gate, const struct apply *change)
{
	for (unsigned int i = 0; i < change->placings.count; i++) {
		const struct placing *placing = &change->placings.list[i];
		const struct attachment *a = &placing->attachment;

		printf("%s: %s gate '%s', hook %s, mode %s\n", name_shown(a->device),
		       placing->detaches ? "detached from" : "attached to", gate->name,
		       hook_names[a->hook], mode_names[a->mode]);
	}
}

static int report_json(const struct gate *gate, const struct apply *change, uint64_t trial_ns)
{
	static const char *const keys[EFFECTS] = {
		[POLICIES_ADDED] = "policies_added",
		[POLICIES_CHANGED] = "policies_changed",
		[POLICIES_DELETED] = "policies_deleted",
		[NOW_DENIED] = "denied",
		[NOW_ALLOWED] = "allowed",
		[NO_LONGER_DENIED] = "no_longer_denied",
		[NO_LONGER_ALLOWED] = "no_longer_allowed",
	};
	json_t *object =
		json_pack("{s:s, s:I, s:b, s:b, s:o, s:o}", "gate", gate->name, "generation",
			  (json_int_t)gate->state->generation, "changed",
			  apply_has_rules(change) || change->resized || change->placings.count,
			  "resized", change->resized, "attached", placings_json(change, false),
			  "detached", placings_json(change, true));

	json_object_set_new(object, "trial_ms",
			    trial_ns ? json_integer(trial_ns / 1000000) : json_null());
	for (unsigned int i = 0; i < EFFECTS; i++)
		json_object_set_new(object, keys[i], json_integer(change->effects[i]));
	return json_print(object);
}

static int report(const struct context *context, const struct gate *gate,
		  const struct apply *change)
{
	const char *separator = "";

	if (context->json)
		return report_json(gate, change, context->trial_ns);
	if (!apply_has_rules(change) && !change->resized && !change->placings.count)
		printf("gate '%s': nothing to change\n", gate->name);
	if (change->resized || apply_has_rules(change))
		printf("gate '%s': %s", gate->name, change->resized ? "resized" : "");
	if (apply_has_rules(change)) {
		separator = change->resized ? "; " : "";
		policies_print(change, &separator);
		entries_print(change, &separator);
		if (!change->wanted.count)
			printf("%sonly lists without entries", separator);
		printf("; in force as generation %u", gate->state->generation);
	}
	if (change->resized || apply_has_rules(change))
		putchar('\n');
	placings_print(gate, change);
	return OK;
}

/*
 * Counts the attachments that will filter once the change is made. Read before it: a command that
 * cannot read them leaves the rules as they were.
 */
static int alive_count(const struct gate *gate, const struct placings *placings, unsigned int *ret)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count, alive = 0;
	int status = attachments_read(gate, all, &count);

	for (unsigned int i = 0; !status && i < count; i++)
		alive += all[i].program_id != 0;
	for (unsigned int i = 0; !status && i < placings->count; i++) {
		const struct placing *placing = &placings->list[i];

		if (placing->detaches)
			alive -= placing->attachment.program_id != 0;
		else
			alive += !placing->replaces;
	}
	*ret = alive;
	return status;
}

/* Warns of a gate without a device: it has rules, and no packet to judge by them. */
static void say_unattached(const struct gate *gate, const struct places *places)
{
	if (!places->said)
		note("gate '%s' filters nothing yet: no device is attached. That does 'sluice "
		     "%s-g %s attach DEV'",
		     gate->name, netns_typed(), gate->name);
	else if (!places->count)
		note("gate '%s' filters nothing: 'attach' of the file names no device", gate->name);
	else
		note("gate '%s' filters nothing yet: no device of the file is there. 'sluice keep' "
		     "waits for one; else apply the file again when there is one",
		     gate->name);
}

/* --- The command ---------------------------------------------------------------------------- */

/* What a user may not expect of a change that is in force. */
static int change_say(const struct gate *gate, struct apply *change)
{
	struct attachment made[ATTACHMENTS_MAX];
	struct oversize oversize = {0};
	unsigned int count;

	for (unsigned int i = 0; i < change->wanted.count; i++) {
		const struct rule *before = &change->before.rules[i]; /* of the same prefix */
		const struct rule *wanted = &change->wanted.rules[i];

		oversize_add(&oversize, before, wanted);
		warn_afresh(before, wanted);
	}
	warn_oversize(gate, &oversize);
	warn_newcomers(change->wanted.rules, change->wanted.count);
	warn_losses(gate, &change->losses, true);
	count = placings_made(&change->placings, made);
	return warn_attached(gate, made, count);
}

static int config_apply(const struct context *context, struct config *config,
			const struct apply_args *args)
{
	const struct apply_may may = {.resize = args->resize, .lack_fq = args->no_fq};
	struct gate gate = GATE_CLOSED;
	struct apply change = {0};
	unsigned int alive = 0;
	int status = gate_open(&gate, context->gate, GATE_MAKE, &config->sizes);

	if (!status)
		status = apply_prepare(&gate, config, &may, &change);
	if (!status)
		status = alive_count(&gate, &change.placings, &alive);
	if (!status)
		status = context->trial_ns ? change_try(&gate, &change, context->trial_ns)
					   : apply_make(&gate, &change);
	if (status)
		gate_undo(&gate);
	if (!status)
		status = change_say(&gate, &change);
	if (!status)
		status = report(context, &gate, &change);
	if (!status && !alive)
		say_unattached(&gate, &config->places);
	if (!status)
		kept_note_file(context->gate, args->file);
	apply_free(&change);
	gate_close(&gate);
	return status;
}

static int apply_run(const struct context *context, const void *data)
{
	const struct apply_args *args = data;
	struct config config = {0};
	int status = config_read(args->file, &config);

	if (!status)
		status = config_apply(context, &config, args);
	config_free(&config);
	return status;
}

static const struct word apply_words[] = {
	{"FILE", OPERAND, VALUE_TEXT("FILE"), offsetof(struct apply_args, file), NULL},
	{"no-fq", KEYWORD, NULL, offsetof(struct apply_args, no_fq),
	 "shape although a device lacks the qdisc fq, and so holds no packet back yet"},
	{"--resize", OPTION, NULL, offsetof(struct apply_args, resize),
	 "also make maps of the sizes that the file says"},
	WORD_CONFIRM,
};

static const char apply_details[] =
	"Makes the gate if it is not there yet. The devices that 'attach' of the file names are\n"
	"attached, and others detached; of a file without it, 'sluice attach' makes the gate "
	"filter.\n"
	"The file is YAML or JSON, as 'sluice dump' writes it; - is standard input. All errors in\n"
	"it are said, with line and column, and then nothing is applied; else all of it is, in "
	"one\n"
	"step. Rules that the file does not have go. An entry whose 'until' has passed is left "
	"out,\n"
	"and that is said. Sizes are those of 'sluice help attach'.";

const struct command command_apply = {
	.name = "apply",
	.brief = "make a file's rules those in force",
	.details = apply_details,
	.question = "which file?",
	COMMAND_WORDS(apply_words, struct apply_args),
	.run = apply_run,
};
