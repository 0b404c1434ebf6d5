// SPDX-License-Identifier: GPL-2.0
#include "base/text.h"
#include "doctor/findings.h"
#include "program/writer.h"
#include "report/parts.h"
#include "report/report.h"

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

int report_doctor(const struct asked *asked)
{
	struct findings findings = {0};
	struct doctor_facts facts;
	int err = doctor_read(asked, true, &facts);

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
