// SPDX-License-Identifier: GPL-2.0
/* sluice-top: a live view of a gate. */
#include <langinfo.h>
#include <locale.h>
#include <string.h>

#include "report/parts.h"
#include "top/glyphs.h"
#include "top/top.h"

/* Stores the name of the gate to show: the gate of -g, or `main`, or the only other gate. */
static int gate_find(const struct context *context, char name[GATE_NAME + 1])
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	int err = gate_open_named(&gate, context->gate_given ? context->gate : NULL);

	snprintf(name, GATE_NAME + 1, "%s", gate.name);
	return err;
}

static int top_run(const struct context *context, const void *data)
{
	struct top_words words = *(const struct top_words *)data;
	bool batch = words.batch || context->json;
	_cleanup_(live_close) struct live live = {.gate = GATE_CLOSED};
	char name[GATE_NAME + 1];
	int err = gate_find(context, name) ?: live_open(&live, name);

	if (err)
		return err;
	if (words.times && !batch)
		return error_misuse("times", NULL, "'times' requires -b or -j");
	words.interval_ns = words.interval_ns ?: TOP_INTERVAL_NS;
	if (words.order)
		live.wish.sorting.order = words.order - 1;
	if (words.within.bits)
		live.wish.within = prefix_source(&words.within);
	words.top = words.top ?: batch ? TOP_BATCH_ROWS : LIVE_ROWS;
	/* in batch mode, rows_arrange() sorts all rows, and only the first rows are printed */
	live.wish.most = batch && live.wish.sorting.order > LIVE_BY_ALL ? LIVE_ROWS : words.top;
	return batch ? batch_run(&live, &words, context->json) : viewer_run(&live, &words);
}

int main(int argc, char **argv)
{
	static struct command top;
	static const struct command *const commands[] = {&top};
	static const struct program program = {
		.name = "sluice-top", .commands = commands, .count = 1};

	setlocale(LC_CTYPE, "");
	glyphs_begin(!strcmp(nl_langinfo(CODESET), "UTF-8"));
	top = command_top;
	top.run = top_run;
	top.package = NULL;
	return program_main(&program, argc, argv);
}
