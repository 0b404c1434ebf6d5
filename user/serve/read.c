// SPDX-License-Identifier: GPL-2.0
#include "serve/read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "doctor/facts.h"
#include "doctor/findings.h"
#include "gate/pins.h"
#include "migrate/open.h"
#include "program/program.h"
#include "program/writer.h"
#include "report/parts.h"
#include "report/report.h"
#include "serve/metrics.h"

#define HEALTH_FINDINGS 8		 /* largest number of findings of a gate in /healthz */
#define WATCH_NS	(10 * NS_PER_MS) /* time for which doctor counts packets */
#define DOCTOR_NS	(5 * NS_PER_SEC) /* findings of doctor are valid for 5 s */

/* --- Gates ---------------------------------------------------------------------------------- */

/* Returns the gate that a request specifies, otherwise the only gate to serve, otherwise NULL. */
static const char *gate_asked(const struct gates_reader *reader, const struct route *route)
{
	return *route->gate ? route->gate : reader->scope.gate;
}

/* Refuses a request for a gate that is not served, or whose name is not valid. */
static int gate_check(const struct gates_reader *reader, const struct route *route)
{
	const char *only = reader->scope.gate;

	if (only && *route->gate && strcmp(route->gate, only))
		return error_add(ENOENT, "not-served", gate_object(route->gate),
				 "only gate '%s' is served", only);
	return *route->gate ? gate_check_name(route->gate) : 0;
}

static int print_gate_name(const char *gate, void *data)
{
	const char *only = data;

	if (!only || !strcmp(only, gate))
		print_string(NULL, NULL, gate);
	return 0;
}

static int ignore_gate(const char *gate, void *data)
{
	(void)gate;
	(void)data;
	return 0;
}

static void ignore_unread(const char *gate, void *data)
{
	(void)gate;
	(void)data;
}

static void print_unread_name(const char *gate, void *data)
{
	print_gate_name(gate, data);
}

static int print_gates(const char *only)
{
	int err;

	print_object(NULL);
	print_string("version", NULL, SL_VERSION);
	print_array("gates");
	err = gates_for_each(print_gate_name, ignore_unread, (void *)only);
	print_end();
	print_array("unreadable");
	err = err ?: gates_for_each(ignore_gate, print_unread_name, (void *)only);
	print_end();
	print_end();
	return err;
}

/* --- Health --------------------------------------------------------------------------------- */

struct health {
	const char *only;
	unsigned int gates, reasons;
};

static void print_reason(struct health *health, const char *id, const char *gate, const char *text)
{
	health->reasons++;
	print_row(NULL);
	print_string("id", NULL, id);
	print_string("gate", NULL, gate);
	print_string("text", NULL, text);
	print_end();
}

/* Prints the reasons why a gate does not work as configured. */
static int print_gate_health(const char *name, void *data)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	struct findings findings = {0};
	struct health *health = data;
	unsigned int mark = error_count();

	if (health->only && strcmp(health->only, name))
		return 0;
	health->gates++;
	if (gate_open(&gate, name, GATE_READ, NULL) ||
	    doctor_top(name, HEALTH_FINDINGS, &findings)) {
		const struct sl_error *error = error_last(mark);

		print_reason(health, error ? error->id : "no-memory", name,
			     error ? error->text : why(ENOMEM));
	}
	error_drop(mark);
	for (unsigned int i = 0; i < findings.count; i++)
		if (findings.list[i].severity == WRONG)
			print_reason(health, findings.list[i].id, name, findings.list[i].text);
	findings_free(&findings);
	return 0;
}

static void print_gate_unread(const char *name, void *data)
{
	struct health *health = data;

	if (health->only && strcmp(health->only, name))
		return;
	health->gates++;
	print_reason(health, "gate-unread", name, "the gate cannot be read");
}

/* Prints whether all gates work as configured. Returns 0, or 1 if a gate does not. */
static int print_health(const char *only)
{
	struct health health = {.only = only};
	unsigned int mark = error_count();
	int err;

	print_object(NULL);
	print_array("reasons");
	err = gates_for_each(print_gate_health, print_gate_unread, &health);
	if (err || !health.gates)
		print_reason(&health, "no-gate", only, "there is no gate that can be read");
	error_drop(mark);
	print_end();
	print_string("status", NULL, health.reasons ? "degraded" : "ok");
	print_end();
	return health.reasons > 0;
}

/* --- Documents ------------------------------------------------------------------------------ */

/* Prints a document about one gate. */
static int print_of_gate(struct gates_reader *reader, const struct route *route, const char *name)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	struct packet_args packet;
	int err = route->id == ROUTE_CHECK ? packet_build(&route->check, &packet) : 0;

	err = err ?: gate_open_named(&gate, name);
	if (err)
		return err;
	switch (route->id) {
	case ROUTE_STATS:
		return report_stats(&gate, false);
	case ROUTE_SOURCES:
		return report_sources(&gate, &route->sources);
	case ROUTE_LIMITS:
		return report_show(&gate);
	case ROUTE_LISTS:
		return report_lists(&gate);
	case ROUTE_CHECK:
		return report_check(&gate, &packet);
	case ROUTE_EVENTS: /* the stream needs only the gate's name */
		print_text("%s", gate.name);
		return 0;
	default:
		return rates_print(reader->rates, RATES_MAX, gate.name, &route->live);
	}
}

/*
 * Prints a document. Returns 0, 1 if a gate does not work as configured, or a negative errno with
 * an error.
 */
static int print_document(struct gates_reader *reader, const struct route *route, FILE *out)
{
	const char *gate = gate_asked(reader, route);
	int err = gate_check(reader, route);

	if (err)
		return err;
	switch (route->id) {
	case ROUTE_HEALTH:
		return print_health(gate);
	case ROUTE_METRICS:
		return metrics_print(&reader->scope, route->open_metrics, out);
	case ROUTE_GATES:
		return print_gates(gate);
	case ROUTE_STATUS:
		return report_status(gate);
	case ROUTE_DOCTOR:
		err = report_doctor(&(struct asked){.gate = gate, .watch_ns = WATCH_NS});
		return err < 0 ? err : 0;
	default:
		return print_of_gate(reader, route, gate);
	}
}

/* Returns the HTTP status of a document. err: result of print_document(). */
static unsigned int status_of(const struct route *route, int err, bool is_misuse)
{
	if (!err)
		return 200;
	if (route->id == ROUTE_HEALTH)
		return 503; /* degraded */
	return is_misuse ? 400 : err == -ENOENT ? 404 : 503;
}

/*
 * Prints a document into answer->text. error: print this error instead of the document, in the form
 * of `sluice -j`; may be NULL. Returns the result of print_document(), or -ENOMEM without an error
 * message.
 */
static int answer_print(struct gates_reader *reader, const struct route *route,
			const struct sl_error *error, struct answer *answer)
{
	FILE *out = open_memstream(&answer->text, &answer->length);
	bool failed;
	int err = 0;

	if (!out)
		return -ENOMEM;
	print_begin(out, (route->id != ROUTE_METRICS && route->id != ROUTE_EVENTS) || error);
	if (error)
		error_print(error);
	else
		err = print_document(reader, route, out);
	failed = ferror(out) || !print_is_whole();
	failed |= fclose(out) != 0;
	return failed ? -ENOMEM : err;
}

/*
 * Stores a document or, if reading it fails, the first error. Returns false if there is no memory.
 */
static bool answer_fill(struct gates_reader *reader, const struct route *route,
			struct answer *answer)
{
	const struct sl_error *first = NULL;
	unsigned int mark = error_count();
	int err = answer_print(reader, route, NULL, answer);

	answer->type = route->id != ROUTE_METRICS ? "application/json"
		       : route->open_metrics	  ? METRICS_OPEN
						  : METRICS_TEXT;
	for (unsigned int i = error_count(); i-- > mark;)
		first = error_get(i)->severity == SL_ERROR ? error_get(i) : first;
	answer->status = status_of(route, err, first && first->is_misuse);
	if (err < 0) {
		free(answer->text);
		answer->text = NULL;
		answer->type = "application/json";
		err = first ? answer_print(reader, route, first, answer) : -ENOMEM;
	}
	error_drop(mark);
	return err >= 0;
}

struct answer *document_read(struct gates_reader *reader, const struct route *route,
			     uint64_t *ret_least)
{
	struct answer *answer = calloc(1, sizeof(*answer));

	*ret_least = route->id == ROUTE_DOCTOR || route->id == ROUTE_HEALTH ? DOCTOR_NS : 0;
	if (!answer)
		return NULL;
	answer->references = 1;
	if (!answer_fill(reader, route, answer)) {
		answer_drop(answer);
		return NULL;
	}
	return answer;
}

void reader_rest(struct gates_reader *reader)
{
	rates_rest(reader->rates, RATES_MAX);
}

void reader_close(struct gates_reader *reader)
{
	for (int i = 0; i < RATES_MAX; i++)
		rates_close(&reader->rates[i]);
}
