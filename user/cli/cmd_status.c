// SPDX-License-Identifier: GPL-2.0
/* The commands status and doctor, which print the state of gates, and findings about them. */
#include "cli/command.h"
#include "doctor/facts.h"
#include "report/report.h"

static int status_run(const struct context *context, const void *args)
{
	(void)args;
	return report_status(gate_named(context));
}

const struct command command_status = {
	.name = "status",
	.brief = "gates, devices, and how full the maps are",
	.details =
		"pressure: in a flood of new sources, a source gets a state only after more than\n"
		"two packets on one CPU, so that spoofed sources take no memory. sources: states\n"
		"in the table, one for each source and limit. Full states are evicted first, and\n"
		"blocked states, or states that lack more than half of their burst, last. MEMORY\n"
		"is the memory that the kernel allocates. The last lines are the three most\n"
		"important findings of 'sluice doctor'. See sluice-inspect(7).",
	.run = status_run,
};

/* --- doctor --------------------------------------------------------------------------------- */

struct doctor_args {
	struct operands devices;
	uint64_t watch_ns;
};

#define WATCH_NS (2 * NS_PER_SEC) /* default time for which doctor watches packets */

static const struct value_type watch_time = VALUE_TIME(NS_PER_SEC / 100, 3600 * NS_PER_SEC);

/* Runs doctor. Returns 0, 1 if a finding is WRONG, or a negative errno. */
static int doctor_run(const struct context *context, const void *data)
{
	const struct doctor_args *args = data;
	const struct asked asked = {
		.gate = gate_named(context),
		.devices = args->devices.words,
		.count = args->devices.count,
		.watch_ns = args->watch_ns ?: WATCH_NS,
	};

	return report_doctor(&asked);
}

static const struct word doctor_words[] = {
	{"DEV", OPERANDS, NULL, offsetof(struct doctor_args, devices), NULL},
	{"--watch", OPTION, &watch_time, offsetof(struct doctor_args, watch_ns),
	 "watch arriving packets for TIME, 10ms to 1h. Default: 2s"},
};

const struct command command_doctor = {
	.name = "doctor",
	.brief = "what is wrong, and what could be set up better",
	.details =
		"Examines the kernel, the devices and the rules of all gates, of the gate of -g,\n"
		"or of the gates of the named devices. If a device is attached, it watches\n"
		"arriving packets for a while. It changes nothing. Each finding ends with its\n"
		"name in brackets, and a command to paste follows. wrong: a rule has no effect, "
		"or\n"
		"packets are lost; then the exit status is 1. advice: a setting is probably not\n"
		"meant, or could be better.",
	COMMAND_WORDS(doctor_words, struct doctor_args),
	.run = doctor_run,
};
