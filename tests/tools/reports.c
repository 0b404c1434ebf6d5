// SPDX-License-Identifier: GPL-2.0
/*
 * reports GATE ADDRESS
 *
 * Prints each report of user/report/report.h twice, as JSON and as text, in this process. Each
 * document begins with a line "NAME text|json BYTES STATUS".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "doctor/facts.h"
#include "program/writer.h"
#include "report/parts.h"
#include "report/report.h"

static const char *const names[] = {"status", "doctor",	 "stats", "lists",
				    "show",   "sources", "check", "export"};

static int report(const char *name, const char *gate_name, const struct sl_prefix *address)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	const struct asked asked = {.gate = gate_name, .watch_ns = 10 * NS_PER_MS};
	const struct check_args packet_words = {.source = *address};
	const struct sources_args all = {0};
	struct packet_args packet;
	int err;

	if (!strcmp(name, "status"))
		return report_status(gate_name);
	if (!strcmp(name, "doctor"))
		return report_doctor(&asked);
	if (!strcmp(name, "export"))
		return report_metrics(gate_name);
	err = packet_build(&packet_words, &packet) ?: gate_open_named(&gate, gate_name);
	if (err)
		return err;
	return !strcmp(name, "stats")	? report_stats(&gate, false)
	       : !strcmp(name, "lists") ? report_lists(&gate)
	       : !strcmp(name, "show")	? report_show(&gate)
	       : !strcmp(name, "check") ? report_check(&gate, &packet)
					: report_sources(&gate, &all);
}

int main(int argc, char **argv)
{
	struct sl_prefix address;

	if (argc != 3 || address_parse(argv[2], &address))
		return 2;
	for (size_t i = 0; i < 4 * ARRAY_SIZE(names); i++) {
		const char *name = names[i % ARRAY_SIZE(names)];
		bool json = i / ARRAY_SIZE(names) % 2 && strcmp(name, "export");
		_cleanup_free_ char *text = NULL;
		size_t length;
		FILE *out = open_memstream(&text, &length);
		int status;

		if (!out)
			return 1;
		print_begin(out, json);
		status = report(name, argv[1], &address);
		fclose(out);
		printf("%s %s %zu %d\n%s", name, json ? "json" : "text", length, status, text);
	}
	return 0;
}
