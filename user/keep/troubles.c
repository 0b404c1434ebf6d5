// SPDX-License-Identifier: GPL-2.0
#include "keep/troubles.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"

static bool messages_have(const struct messages *messages, const char *text)
{
	for (unsigned int i = 0; i < messages->count; i++)
		if (!strcmp(messages->list[i], text))
			return true;
	return false;
}

static void messages_free(struct messages *messages)
{
	for (unsigned int i = 0; i < messages->count; i++)
		free(messages->list[i]);
	free(messages->list);
	*messages = (struct messages){0};
}

/* A message that cannot be kept is printed again the next time. */
static bool is_new(void *data, const char *message)
{
	struct troubles *troubles = data;
	char *copy = strdup(message);

	if (copy && array_grow(troubles->now.list, troubles->now.count, troubles->now.room))
		troubles->now.list[troubles->now.count++] = copy;
	else
		free(copy);
	return !messages_have(&troubles->before, message) &&
	       !(troubles->other && messages_have(&troubles->other->before, message));
}

void troubles_begin(struct troubles *troubles, const struct troubles *other)
{
	troubles->other = other;
	log_filter(is_new, troubles);
}

void troubles_end(struct troubles *troubles)
{
	log_filter(NULL, NULL);
	messages_free(&troubles->before);
	troubles->before = troubles->now;
	troubles->now = (struct messages){0};
}

void troubles_free(struct troubles *troubles)
{
	messages_free(&troubles->before);
	messages_free(&troubles->now);
}
