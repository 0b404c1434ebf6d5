// SPDX-License-Identifier: GPL-2.0
#include "cli/command.h"
#include "doctor/findings.h"

void print_finding(const struct finding *finding, bool of_several, const char *indent)
{
	print_object(NULL);
	print_text("%s", indent);
	print_string("severity", "%s: ", severity_names[finding->severity]);
	if (of_several && finding->gate && strcmp(finding->gate, finding->object))
		print_text("gate '%s': ", finding->gate);
	print_string("gate", NULL, finding->gate);
	print_string("object", "%s: ", finding->object);
	print_string("text", "%s", finding->text);
	print_string("id", " [%s]\n", finding->id);
	print_text("%s", indent);
	print_string("advice", "    %s\n", finding->advice);
	print_end();
}

struct doctor_args {
	struct operands devices;
	uint64_t watch_ns;
};

static void print_findings(const struct findings *findings, const struct doctor_facts *facts)
{
	unsigned int wrong = findings_count(findings, WRONG);
	unsigned int advice = findings_count(findings, ADVICE);
	unsigned int gates = 0, attachments = 0;
	uint64_t judged = 0;
	char span[UNITS_TEXT];

	for (unsigned int i = 0; i < facts->count; i++) {
		const struct gate_facts *gate = &facts->gates[i];

		if (!gate->is_examined || gate->unread)
			continue;
		gates++;
		for (unsigned int j = 0; j < gate->count; j++)
			attachments += gate->devices[j].is_asked;
		judged += gate->after.all - gate->before.all;
	}
	print_array(NULL);
	for (unsigned int i = 0; i < findings->count; i++)
		print_finding(&findings->list[i], gates > 1, "");
	print_end();
	if (wrong)
		print_text("%u %s wrong", wrong, plural(wrong, "thing is", "things are"));
	else
		print_text("nothing is wrong");
	if (advice)
		print_text(", and %u %s could be better", advice,
			   plural(advice, "thing", "things"));
	print_text(": looked at %u %s, %u %s", gates, plural(gates, "gate", "gates"), attachments,
		   plural(attachments, "attachment", "attachments"));
	if (attachments)
		print_text(", and %" PRIu64 " %s in %s", judged,
			   plural(judged, "packet", "packets"),
			   time_format(facts->asked->watch_ns, span));
	print_text("\n");
}

#define WATCH_NS (2 * NS_PER_SEC) /* long enough for what arrives from time to time */

static const struct value_type watch_time = VALUE_TIME(NS_PER_SEC / 100, 3600 * NS_PER_SEC);

/* Returns 1 if something is wrong. */
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
	struct doctor_facts facts;
	int err = doctor_read(&asked, true, &facts);

	if (err)
		return err;
	err = doctor_find(&facts, &findings);
	if (!err) {
		print_findings(&findings, &facts);
		err = findings_count(&findings, WRONG) > 0;
	}
	findings_free(&findings);
	doctor_free(&facts);
	return err;
}

static const struct word doctor_words[] = {
	{"DEV", OPERANDS, NULL, offsetof(struct doctor_args, devices), NULL},
	{"--watch", OPTION, &watch_time, offsetof(struct doctor_args, watch_ns),
	 "watch for TIME what arrives, 10ms to 1h; default 2s"},
};

const struct command command_doctor = {
	.name = "doctor",
	.brief = "why nothing happens, and what is not set up well",
	.details =
		"Looks at the kernel, the devices and the rules of all gates, or of one with -g,\n"
		"or of those of the named devices. If a device is attached, it watches for a\n"
		"while what arrives. It changes nothing. Each finding has its name in brackets,\n"
		"and below it a command to paste. wrong: something that was asked for does not\n"
		"happen, or packets are lost; then the exit status is 1. advice: it may not be\n"
		"what was meant, or it could be better.",
	COMMAND_WORDS(doctor_words, struct doctor_args),
	.run = doctor_run,
};
