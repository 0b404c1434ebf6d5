// SPDX-License-Identifier: GPL-2.0
#include "program/progress.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define SHOW_NS (NS_PER_SEC / 5)

static bool is_shown;

void progress_show(uint64_t done, uint64_t total, uint64_t items, const char *what)
{
	static uint64_t next_ns;
	uint64_t now = clock_read(CLOCK_MONOTONIC);

	if (now < next_ns || !isatty(STDERR_FILENO))
		return;
	next_ns = now + SHOW_NS;
	is_shown = true;
	if (total)
		fprintf(stderr, "\r%3" PRIu64 " %%, %" PRIu64 " %s\033[K", 100 * done / total,
			items, what);
	else
		fprintf(stderr, "\r%" PRIu64 " %s\033[K", items, what);
}

void progress_end(void)
{
	if (is_shown)
		fprintf(stderr, "\r\033[K");
	is_shown = false;
}
