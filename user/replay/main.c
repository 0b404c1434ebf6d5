// SPDX-License-Identifier: GPL-2.0
/* The program sluice-replay: the commands that read captures. Only this program links libpcap. */
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "replay/replay.h"
#include "replay/show.h"
#include "replay/suggest.h"
#include "replaying/command_suggest.h"
#include "rules/prefix.h"

#define PREFIXES_TEXT 4096

/* --- Conditions ----------------------------------------------------------------------------- */

/* Returns whether the first rules dropped a packet from a prefix. */
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

/* Parses the next prefix of a list that is separated by commas. Returns 1, 0, or an error. */
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

/* Checks the prefixes of a condition before the capture is read. */
static int condition_parse(const char *list)
{
	struct sl_prefix prefix;
	int more;

	while ((more = prefix_next(&list, &prefix)) == 1)
		;
	return more;
}

/* Returns whether a condition holds for all its prefixes, and adds an error if it does not. */
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

/* --- The command ---------------------------------------------------------------------------- */

/* Returns 0, 1 if a condition does not hold, or a negative errno. */
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
	holds = condition_holds(&replay.tally[0], words->if_dropped, false);
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
