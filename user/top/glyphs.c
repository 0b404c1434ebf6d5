// SPDX-License-Identifier: GPL-2.0
#include "top/glyphs.h"

#include <string.h>

#include "base/text.h"

#define LEVELS 9 /* number of heights of a bar in a sparkline, including 0 */

static struct {
	const char *spark[LEVELS];
	const char *full, *empty;
} glyphs = {{" ", "_", ".", "-", "=", "+", "*", "%", "#"}, "#", "."};

void glyphs_begin(bool is_utf8)
{
	static const char *const blocks[LEVELS] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

	if (!is_utf8)
		return;
	memcpy(glyphs.spark, blocks, sizeof(blocks));
	glyphs.full = "█";
	glyphs.empty = "░";
}

unsigned int glyphs_width(const char *text)
{
	unsigned int width = 0;
	uint32_t code;

	for (; *text; width++)
		text += text_character(text, &code) ?: 1;
	return width;
}

const char *rate_cell(float rate, char text[CELL_TEXT])
{
	if (rate > 0 && rate < 9.95f)
		snprintf(text, CELL_TEXT, "%.1f", rate < 0.1f ? 0.1 : (double)rate);
	else
		count_format(rate + 0.5, text);
	return text;
}

const char *bar_format(double part, char text[GLYPHS_TEXT(BAR_COLUMNS)])
{
	int full = part * BAR_COLUMNS + 0.5;
	char *to = text;

	*text = '\0';
	for (int i = 0; i < BAR_COLUMNS; i++)
		to = stpcpy(to, i < full ? glyphs.full : glyphs.empty);
	return text;
}

/* Returns the largest of the kept rates of a history. */
static float history_most(const struct live_history *history, const float *rates)
{
	float most = 0;

	for (unsigned int ago = 0; ago < live_kept(history); ago++)
		if (rates[live_slot(history, ago)] > most)
			most = rates[live_slot(history, ago)];
	return most;
}

const char *sparkline_format(const struct live_history *history, const float *rates,
			     unsigned int columns, char text[GLYPHS_TEXT(LIVE_HISTORY)])
{
	float most = history_most(history, rates);
	unsigned int kept = live_kept(history);
	char *to = text;

	*text = '\0';
	columns = columns < LIVE_HISTORY ? columns : LIVE_HISTORY;
	for (unsigned int ago = columns; ago--;) {
		float rate = ago < kept ? rates[live_slot(history, ago)] : 0;
		/* show a rate above 0 by a bar of height 1 or more */
		int level = rate > 0 ? 1 + (int)(rate / most * (LEVELS - 2)) : 0;

		to = stpcpy(to, glyphs.spark[level < LEVELS ? level : LEVELS - 1]);
	}
	return text;
}
