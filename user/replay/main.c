// SPDX-License-Identifier: GPL-2.0
/* The program sluice-replay: the commands that read captures. Only this program needs libpcap. */
#include <errno.h>
#include <inttypes.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "replay/replay.h"
#include "replay/show.h"
#include "replay/suggest.h"
#include "replaying/command_suggest.h"
#include "rules/prefix.h"

/* Returns whether all conditions are true, and adds an error for each condition that is false. */
static bool conditions_hold(const struct replay *replay)
{
	bool hold = true;

	for (unsigned int i = 0; i < replay->conditions; i++) {
		const struct condition *condition = &replay->condition[i];
		char text[PREFIX_TEXT];

		if (condition->is_dropped == condition->is_wanted)
			continue;
		hold = false;
		error_add(EPERM, condition->is_wanted ? "not-dropped" : "dropped",
			  prefix_format(&condition->prefix, text),
			  condition->is_wanted ? "no packet from it is dropped"
					       : "packets from it are dropped");
	}
	return hold;
}

/* --- Packets that were not judged ----------------------------------------------------------- */

#define INTERFACES_SHOWN 8

/*
 * Adds the error that no packet is of interface `wanted`. It lists the interfaces of the capture.
 */
static void interface_refuse(const struct capture_totals *totals, const char *wanted)
{
	char list[INTERFACES_SHOWN * (CAPTURE_NAME + 2)] = "";
	size_t length = 0;

	for (unsigned int i = 0; i < totals->interfaces && i < INTERFACES_SHOWN; i++) {
		const char *name = totals->interface[i].name;
		char digits[16];

		snprintf(digits, sizeof(digits), "%u", totals->interface[i].number);
		length += snprintf(list + length, sizeof(list) - length, "%s%s", i ? ", " : "",
				   *name ? name : digits);
	}
	error_add(ENODATA, "nothing-judged", "--interface",
		  "no packet is of interface '%s'; the capture has %s", name_shown(wanted), list);
}

/* Adds an error if no packet was chosen. */
static void nothing_refuse(const struct replay *replay)
{
	const struct capture_totals *totals = capture_totals(replay->capture);
	const char *interface = replay->choice.interface, *capture = replay->words->capture;

	if (!totals->left_out)
		error_add(ENODATA, "nothing-judged", capture, "the capture has no packets");
	else if (totals->other_way == totals->left_out)
		error_add(ENODATA, "nothing-judged", capture,
			  "no packet was judged: all %" PRIu64 " were %s; try %s", totals->left_out,
			  replay->words->is_out ? "received" : "sent",
			  replay->words->is_out ? "--in" : "--out");
	else if (interface && !replay->choice.has_to && !totals->other_way)
		interface_refuse(totals, interface);
	else
		error_add(ENODATA, "nothing-judged", capture,
			  "no packet of %" PRIu64 " was chosen; check --in, --out, --to and "
			  "--interface",
			  totals->left_out);
}

/* Returns whether all chosen packets were judged, and adds an error if not. */
static bool all_are_judged(const struct replay *replay)
{
	const char *capture = replay->words->capture;

	if (replay->cut)
		error_add(ENODATA, "not-judged", capture,
			  "%" PRIu64 " packets were not judged, because their source was cut off; "
			  "capture with a larger -s",
			  replay->cut);
	if (replay->refused)
		error_add(ENODATA, "not-judged", capture,
			  "%" PRIu64 " packets were not judged, because the kernel runs no program "
			  "on them",
			  replay->refused);
	if (!capture_totals(replay->capture)->packets && replay->is_complete)
		nothing_refuse(replay);
	return capture_totals(replay->capture)->packets && !replay->cut && !replay->refused;
}

/* --- The command ---------------------------------------------------------------------------- */

/* Returns 0, 1 if a condition is false or a packet was not judged, or a negative errno. */
static int replay_command(const struct context *context, const void *args)
{
	const struct replay_words *words = args;
	_cleanup_(replay_close) struct replay replay = {0};
	bool holds;
	int err = replay_open(&replay, words, context->gate_given ? context->gate : NULL);

	if (err)
		return err;
	err = replay_run(&replay);
	err = show(&replay) ?: err;
	if (err)
		return err;
	holds = all_are_judged(&replay);
	holds &= conditions_hold(&replay);
	return !holds;
}

int main(int argc, char **argv)
{
	static struct command replay, suggest;
	static const struct command *const commands[] = {&replay, &suggest, &command_version,
							 &command_help};
	static const struct program program = {.name = "sluice-replay",
					       .commands = commands,
					       .count = ARRAY_SIZE(commands),
					       .usage = ""};

	replay = command_replay;
	replay.run = replay_command;
	replay.package = NULL;
	suggest = command_suggest;
	suggest.run = suggest_command;
	suggest.package = NULL;
	return program_main(&program, argc, argv);
}
