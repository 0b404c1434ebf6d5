// SPDX-License-Identifier: GPL-2.0
#include "cli/found.h"

#include <string.h>

#include "cli/report.h"
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

#define FINDINGS_SHOWN 3

void print_top_findings(const struct gate *gate)
{
	struct findings findings;

	if (doctor_top(gate->name, FINDINGS_SHOWN, &findings))
		return;
	print_array("findings");
	for (unsigned int i = 0; i < findings.count; i++)
		print_finding(&findings.list[i], false, "  ");
	print_end();
	findings_free(&findings);
}
