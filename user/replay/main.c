// SPDX-License-Identifier: GPL-2.0
/* The program sluice-replay: the commands that read captures. Only this program needs libpcap. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "replay/replay.h"
#include "replay/show.h"
#include "replay/suggest.h"
#include "replaying/command_suggest.h"
#include "rules/prefix.h"

#define PREFIXES_TEXT 4096

/* --- Conditions ----------------------------------------------------------------------------- */

/* Returns whether the first set of rules dropped a packet whose source is in `prefix`. */
static bool prefix_is_dropped(const struct tally *tally, const struct sl_prefix *prefix)
{
	const struct tally_sources *sources = &tally->sources;

	for (uint32_t i = 0; sources->slot && i <= sources->mask; i++) {
		const struct tally_source *source = &sources->slot[i];

		if (source->prefix.bits && source->fates.of[FATE_DROPPED].packets &&
		    prefix_covers(prefix, &source->prefix))
			return true;
	}
	return false;
}

/*
 * Parses the next prefix of a comma-separated list. Returns 1, 0 at the end of the list, or a
 * negative errno.
 */
static int prefix_next(const char **list, struct sl_prefix *ret)
{
	size_t length = strcspn(*list ?: "", ",");
	char text[PREFIX_TEXT];
	int err;

	if (!*list || !**list)
		return 0;
	if (length >= sizeof(text))
		return error_misuse("bad-prefix", NULL, "'%s' is too long for a prefix", *list);
	snprintf(text, sizeof(text), "%.*s", (int)length, *list);
	*list += length + ((*list)[length] == ',');
	err = prefix_parse(text, ret);
	return err ?: 1;
}

/* Checks that the prefixes of a condition are valid. Returns 0 or a negative errno. */
static int condition_parse(const char *list)
{
	struct sl_prefix prefix;
	int more;

	while ((more = prefix_next(&list, &prefix)) == 1)
		;
	return more;
}

/*
 * Returns whether a condition is true for all its prefixes. Adds an error for each prefix for which
 * it is false.
 */
static bool condition_holds(const struct tally *tally, const char *list, bool is_dropped)
{
	struct sl_prefix prefix;
	bool holds = true;

	while (prefix_next(&list, &prefix) == 1) {
		char text[PREFIX_TEXT];

		if (prefix_is_dropped(tally, &prefix) == is_dropped)
			continue;
		holds = false;
		error_add(EPERM, is_dropped ? "not-dropped" : "dropped",
			  prefix_format(&prefix, text),
			  is_dropped ? "no packet from it is dropped"
				     : "packets from it are dropped");
	}
	return holds;
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
	if (!capture_totals(replay->capture)->packets)
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
	int err = condition_parse(words->if_dropped) ?: condition_parse(words->unless_dropped);

	err = err ?: replay_open(&replay, words, context->gate_given ? context->gate : NULL);
	if (err)
		return err;
	err = replay_run(&replay);
	err = show(&replay) ?: err;
	if (err)
		return err;
	holds = all_are_judged(&replay);
	holds &= condition_holds(&replay.tally[0], words->if_dropped, false);
	holds &= condition_holds(&replay.tally[0], words->unless_dropped, true);
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
