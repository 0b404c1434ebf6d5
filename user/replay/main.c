// SPDX-License-Identifier: GPL-2.0
/* The program sluice-replay: the commands that read captures. Only this program needs libpcap. */
#include <errno.h>
#include <inttypes.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "replay/replay.h"
#include "replay/show.h"
#include "replay/suggest.h"
#include "replay/unchosen.h"
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

/* Returns whether all chosen packets were judged, and adds an error if not. */
static bool all_are_judged(const struct replay *replay)
{
	const struct capture_totals *totals = capture_totals(replay->capture);
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
	if (!totals->packets && replay->is_complete)
		unchosen_explain(totals, &replay->choice, "nothing-judged", capture);
	return totals->packets && !replay->cut && !replay->refused;
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
