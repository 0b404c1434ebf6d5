// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "base/clock.h"
#include "cli/command.h"
#include "keep/loop.h"

struct keep_words {
	const char *file;
	const char *state;
	const char *interval;
	const char *resize;
};

static const struct time_range interval_range = {
	.min_ns = NS_PER_SEC,
	.max_ns = 86400 * NS_PER_SEC,
	.words = "1s to 1d",
};

static int keep_command_run(const struct context *context, const void *data)
{
	const struct keep_words *words = data;
	struct keep_args args = {
		.gate = context->gate,
		.file = words->file,
		.state = words->state,
		.resize = words->resize,
	};
	uint64_t interval_ns;
	int status = option_time("--interval", words->interval, &interval_range, &interval_ns);

	args.interval_ms = interval_ns / 1000000;
	if (!status && !strcmp(args.file, "-"))
		status = misuse("keep: a file that is read again cannot be standard input");
	return status ? status : keep_run(&args);
}

static const struct word keep_words[] = {
	{"FILE", OPERAND, NULL, offsetof(struct keep_words, file), NULL},
	{"--state", OPTION, "FILE", offsetof(struct keep_words, state),
	 "what commands allow and deny is saved here, and so outlives the gate and a reboot"},
	{"--interval", OPTION, "TIME", offsetof(struct keep_words, interval),
	 "look at list files also every TIME, 1s to 1d: for file systems without inotify"},
	{"--resize", OPTION, NULL, offsetof(struct keep_words, resize),
	 "a reload also makes maps of the sizes that the file says"},
};

static const char keep_details[] =
	"Applies the file, and then stays: attaches its devices when they appear or come back, "
	"and\n"
	"reads list files again when they change. SIGHUP applies the file again; a bad file "
	"changes\n"
	"nothing. SIGTERM ends it. The filter does not need it, and goes on without it.";

const struct command command_keep = {
	.name = "keep",
	.brief = "keep a gate as a file says, as a service",
	.details = keep_details,
	.question = "which file?",
	COMMAND_WORDS(keep_words, struct keep_words),
	.run = keep_command_run,
};
