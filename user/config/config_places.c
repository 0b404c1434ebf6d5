// SPDX-License-Identifier: GPL-2.0
/* `attach` of a rules file. */
#include <string.h>

#include "config/config_reader.h"

static int item_parse(struct reader *reader, const struct node *item, struct place *ret)
{
	const struct node *optional = node_find(item, "optional");
	struct place_words words = {
		.device = item->word ? item->word : node_word(item, "device"),
		.hook = node_word(item, "hook"),
		.mode = node_word(item, "mode"),
		.netns = node_word(item, "netns"),
	};

	if (optional && reader_truth(reader, optional, &words.optional))
		return MISUSED;
	reader_place(reader, item);
	if (!words.device)
		return misuse("an entry of 'attach' needs a device: write 'device: eth0'");
	return place_parse(&words, ret);
}

/* Refuses a device that is named twice for a hook: its modes could differ. */
static int refuse_twice(const struct places *places, const struct place *place)
{
	for (unsigned int i = 0; i < places->count; i++) {
		const struct place *other = &places->list[i];

		if (!strcmp(other->device, place->device) && !strcmp(other->netns, place->netns) &&
		    other->hook == place->hook)
			return misuse("'%s' is attached twice on hook %s", place->device,
				      hook_names[place->hook]);
	}
	return OK;
}

void places_read(struct reader *reader)
{
	const struct node *list = node_find(reader->document.root, "attach");

	reader->places.said = list;
	for (const struct node *item = list ? list->first : NULL; item; item = item->next) {
		struct place place;
		int status = item_parse(reader, item, &place);

		if (!status)
			status = refuse_twice(&reader->places, &place);
		if (!status)
			status = places_add(&reader->places, &place);
		reader_failed(reader, status);
	}
}
