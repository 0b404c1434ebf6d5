// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "base/clock.h"
#include "cli/command.h"
#include "keep/keep.h"

struct keep_words {
	const char *file;
	const char *state;
	uint64_t interval_ns;
	bool resize;
};

static const struct value_type interval_time = VALUE_TIME(NS_PER_SEC, 86400 * NS_PER_SEC);

static int keep_command_run(const struct context *context, const void *data)
{
	const struct keep_words *words = data;
	struct keep_args args = {
		.gate = context->gate,
		.file = words->file,
		.state = words->state,
		.resize = words->resize,
		.interval_ms = words->interval_ns / 1000000,
	};

	if (!strcmp(words->file, "-"))
		return error_misuse("no-file", "keep",
				    "a file that is read again cannot be standard input");
	return keep_run(&args);
}

static const struct word keep_words[] = {
	{"FILE", OPERAND, VALUE_TEXT("FILE"), offsetof(struct keep_words, file), NULL},
	{"--state", OPTION, VALUE_TEXT("FILE"), offsetof(struct keep_words, state),
	 "save here what commands allow and deny, so that it outlives the gate and a reboot"},
	{"--interval", OPTION, &interval_time, offsetof(struct keep_words, interval_ns),
	 "also read list files again every TIME, 1s to 1d: for file systems without inotify"},
	{"--resize", OPTION, NULL, offsetof(struct keep_words, resize),
	 "a reload also makes maps of the sizes in the file"},
};

static const char keep_details[] =
	"Applies the file, and then stays: attaches its devices when they appear or come back,\n"
	"and reads list files again when they change. SIGHUP applies the file again; a bad file\n"
	"changes nothing. SIGTERM ends it. The filter does not need this process, and continues\n"
	"without it.";

const struct command command_keep = {
	.name = "keep",
	.brief = "keep a gate as a file says, as a service",
	.details = keep_details,
	.question = "which file?",
	COMMAND_WORDS(keep_words, struct keep_words),
	.run = keep_command_run,
};
