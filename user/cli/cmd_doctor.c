// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/report.h"
#include "doctor/examine.h"
#include "rules/value.h"

struct doctor_args {
	struct operands devices;
	uint64_t watch_ns;
};

static json_t *findings_json(const struct findings *findings)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->list[i];
		const struct finding_kind *kind = &finding_kinds[finding->id];

		json_array_append_new(
			list, json_pack("{s:s, s:s, s:s?, s:o, s:o, s:s?}", "id", kind->name,
					"severity", severity_names[kind->severity], "gate",
					finding->gate, "object", json_name(finding->object), "text",
					json_name(finding->text), "advice", finding->advice));
	}
	return list;
}

/* Of one gate it is plain which is meant, and of an object that is the gate. */
static void finding_print(const struct finding *finding, bool of_several)
{
	const struct finding_kind *kind = &finding_kinds[finding->id];

	printf("%s: ", severity_names[kind->severity]);
	if (of_several && finding->gate && strcmp(finding->gate, finding->object))
		printf("gate '%s': ", finding->gate);
	printf("%s: %s [%s]\n", finding->object, finding->text, kind->name);
	if (finding->advice)
		printf("    %s\n", finding->advice);
}

static void findings_print(const struct findings *findings, const struct examined *examined,
			   uint64_t watch_ns)
{
	unsigned int wrong = findings_count(findings, WRONG);
	unsigned int advice = findings_count(findings, ADVICE);
	char span[UNITS_TEXT];

	for (unsigned int i = 0; i < findings->count; i++)
		finding_print(&findings->list[i], examined->gates > 1);
	if (wrong)
		printf("%u %s wrong", wrong, plural(wrong, "thing is", "things are"));
	else
		printf("nothing is wrong");
	if (advice)
		printf(", and %u %s could be better", advice, plural(advice, "thing", "things"));
	printf(": looked at %u %s, %u %s", examined->gates,
	       plural(examined->gates, "gate", "gates"), examined->attachments,
	       plural(examined->attachments, "attachment", "attachments"));
	if (examined->attachments)
		printf(", and %" PRIu64 " %s in %s", examined->judged,
		       plural(examined->judged, "packet", "packets"), time_format(watch_ns, span));
	putchar('\n');
}

/* Long enough for what arrives from time to time, and for a person to wait. */
#define WATCH_NS (2 * NS_PER_SEC)

static const struct value_type watch_time = VALUE_TIME(NS_PER_SEC / 100, 3600 * NS_PER_SEC);

static int doctor_run(const struct context *context, const void *data)
{
	const struct doctor_args *args = data;
	struct asked asked = {
		.gate = context->gate_given ? context->gate : NULL,
		.devices = args->devices.words,
		.count = args->devices.count,
		.watch_ns = args->watch_ns ?: WATCH_NS,
	};
	struct findings findings = {0};
	struct examined examined;
	int status;

	status = examine(&asked, &examined, &findings);
	if (!status && context->json)
		status = json_print(findings_json(&findings));
	else if (!status)
		findings_print(&findings, &examined, asked.watch_ns);
	if (!status && findings_count(&findings, WRONG))
		status = FAILED;
	findings_free(&findings);
	return status;
}

static const struct word doctor_words[] = {
	{"DEV", OPERANDS, NULL, offsetof(struct doctor_args, devices), NULL},
	{"--watch", OPTION, &watch_time, offsetof(struct doctor_args, watch_ns),
	 "watch for TIME what arrives, 10ms to 1h; default 2s"},
};

static const char doctor_details[] =
	"Looks at the kernel, the devices and the rules of all gates, or of one with -g, or of\n"
	"those of the named devices. Where a device is attached it watches for a while what\n"
	"arrives. It changes nothing. Each finding has its name in brackets, and below it a\n"
	"command to paste. wrong: something that was asked for does not happen, or packets are\n"
	"lost; then the exit status is 1. advice: it may not be what was meant, or it could be\n"
	"better.";

const struct command command_doctor = {
	.name = "doctor",
	.brief = "why nothing happens, and what is not set up well",
	.details = doctor_details,
	COMMAND_WORDS(doctor_words, struct doctor_args),
	.run = doctor_run,
};
