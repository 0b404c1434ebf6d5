// SPDX-License-Identifier: GPL-2.0
#include "list_request.h"

#include <string.h>

#include "lists.h"
#include "prefix.h"
#include "units.h"

#define TIME_MIN_NS 1000000

static enum status time_take(int argc, char **argv, int *index, struct list_request *request)
{
	const char *time;
	enum status status;

	if (request->ns)
		return misuse("%s: 'for' is given twice", argv[0]);
	time = keyword_value(argc, argv, index);
	if (!time)
		return MISUSED;
	status = time_parse("for", time, &request->ns);
	if (!status && request->ns < TIME_MIN_NS)
		status = misuse("for '%s' is too short: the shortest is 1ms", time);
	return status;
}

static enum status name_take(int argc, char **argv, int *index, struct list_request *request)
{
	if (request->name)
		return misuse("%s: 'as' is given twice", argv[0]);
	request->name = keyword_value(argc, argv, index);
	return request->name ? list_name_check(request->name) : MISUSED;
}

static enum status keyword_take(int argc, char **argv, int *index, struct list_request *request)
{
	const char *word = argv[*index];

	if (!strcmp(word, "for"))
		return time_take(argc, argv, index, request);
	if (!strcmp(word, "as"))
		return name_take(argc, argv, index, request);
	if (!strcmp(word, "replace"))
		request->replace = true;
	else
		request->force = true;
	return OK;
}

static enum status prefix_take(const char *word, struct list_request *request)
{
	struct rule rule = {0};
	enum status status = prefix_parse(word, &rule.prefix);

	return status ? status : ruleset_add(&request->entries, &rule);
}

enum status list_request_parse(const struct context *context, int argc, char **argv,
			       const char *const keywords[], size_t count,
			       struct list_request *request)
{
	enum status status = OK;

	request->file = context->file;
	for (int i = 1; !status && i < argc; i++) {
		size_t keyword = 0;

		while (keyword < count && strcmp(argv[i], keywords[keyword]))
			keyword++;
		if (keyword < count)
			status = keyword_take(argc, argv, &i, request);
		else if (request->file || keyword_is_meant(argv[i], keywords, count))
			status = unexpected_for(argv[0], argv[i], keywords, count);
		else
			status = prefix_take(argv[i], request);
	}
	if (!status && !request->file && !request->entries.count)
		status = misuse("%s: which address, prefix or -f FILE? See 'sluice help %s'",
				argv[0], argv[0]);
	return status;
}
