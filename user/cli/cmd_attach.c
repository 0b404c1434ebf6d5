// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "attach/attach.h"
#include "attach/attachment.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/report.h"
#include "cli/warnings.h"
#include "gate/gate.h"
#include "gate/gate_make.h"
#include "migrate/session.h"
#include "rules/sizes.h"

struct request {
	char **names; /* of devices */
	int count;
	enum hook hook;
	enum mode mode;
	struct gate_sizes sizes; /* 0: not said */
};

/* --- Words ---------------------------------------------------------------------------------- */

/* What a keyword is about: a size, or one of these. */
enum keyword {
	KEYWORD_HOOK = SIZES,
	KEYWORD_MODE,
	KEYWORDS,
};

#define KEYWORDS_TEXT 96

static const char *keyword_name(unsigned int keyword)
{
	static const char *const names[KEYWORDS] = {
		[KEYWORD_HOOK] = "hook",
		[KEYWORD_MODE] = "mode",
	};

	return keyword < SIZES ? size_names[keyword] : names[keyword];
}

/* All of them, as "sources, hot, ...". */
static const char *keywords_format(char text[KEYWORDS_TEXT])
{
	int length = 0;

	for (unsigned int i = 0; i < KEYWORDS; i++)
		length += snprintf(text + length, KEYWORDS_TEXT - length, "%s%s", i ? ", " : "",
				   keyword_name(i));
	return text;
}

static void keywords_get(const char *ret[KEYWORDS])
{
	for (unsigned int i = 0; i < KEYWORDS; i++)
		ret[i] = keyword_name(i);
}

/* KEYWORDS: it is none. */
static unsigned int keyword_find(const char *word)
{
	unsigned int i = 0;

	while (i < KEYWORDS && strcmp(keyword_name(i), word))
		i++;
	return i;
}

static enum status value_parse(unsigned int keyword, const char *value, struct request *request)
{
	switch (keyword) {
	case KEYWORD_HOOK:
		return hook_parse(value, &request->hook) ? OK : MISUSED;
	case KEYWORD_MODE:
		return mode_parse(value, &request->mode) ? OK : MISUSED;
	default:
		return size_parse(keyword, value, &request->sizes);
	}
}

static enum status words_parse(int argc, char **argv, int from, struct request *request)
{
	const char *keywords[KEYWORDS];
	bool given[KEYWORDS] = {false};
	enum status status = OK;

	keywords_get(keywords);
	for (int i = from; !status && i < argc; i++) {
		unsigned int keyword = keyword_find(argv[i]);
		const char *value;

		if (keyword == KEYWORDS)
			return unexpected_for(argv[0], argv[i], keywords, KEYWORDS);
		if (given[keyword])
			return misuse("attach: '%s' is given twice", argv[i]);
		given[keyword] = true;
		value = keyword_value(argc, argv, &i);
		status = value ? value_parse(keyword, value, request) : MISUSED;
	}
	return status;
}

/* DEV... comes first; the first keyword ends it. */
static enum status request_parse(int argc, char **argv, struct request *ret)
{
	struct request request = {.names = argv + 1, .hook = HOOK_XDP, .mode = MODE_AUTO};
	enum status status;

	while (1 + request.count < argc && keyword_find(argv[1 + request.count]) == KEYWORDS)
		request.count++;
	status = words_parse(argc, argv, 1 + request.count, &request);
	if (status)
		return status;
	if (!request.count)
		return misuse("attach: which device? See 'sluice help attach'");
	if (request.count > ATTACHMENTS_MAX)
		return misuse("attach: at most %d devices", ATTACHMENTS_MAX);
	*ret = request;
	return mode_check(request.hook, request.mode);
}

/* --- The gate ------------------------------------------------------------------------------- */

/* A gate that is there keeps its sizes: attaching one more device is no reason to make it anew. */
static enum status refuse_other_sizes(const struct gate *gate, const struct gate_sizes *wanted)
{
	struct gate_sizes has;
	enum status status = gate_sizes_read(gate, &has);

	for (unsigned int i = 0; !status && i < SIZES; i++) {
		uint32_t size = size_told(wanted, i), old = size_told(&has, i);

		if (size && size != old)
			status = misuse("gate '%s' has %s %u, and not %u: only 'apply FILE "
					"--resize' changes that",
					gate->name, size_names[i], old, size);
	}
	return status;
}

static enum status gate_prepare(struct gate *gate, const char *name, const struct request *request)
{
	struct gate_sizes wanted;
	struct machine machine;
	enum status status = machine_get(&machine);

	if (status)
		return status;
	wanted = sizes_raise(&request->sizes, &machine);
	status = gate_open_or_make(gate, name, &wanted);
	if (!status && !gate->made)
		status = refuse_other_sizes(gate, &wanted);
	return status;
}

/* --- Devices -------------------------------------------------------------------------------- */

/* Behind the first device a word may have been meant for a keyword as well. */
static enum status name_check(const char *name, bool is_first)
{
	const char *keywords[KEYWORDS], *nearly;
	char text[KEYWORDS_TEXT];
	struct device device;

	if (is_first || if_nametoindex(name))
		return device_find(name, &device);
	keywords_get(keywords);
	nearly = nearly_find(name, keywords, KEYWORDS);
	if (nearly)
		return misuse("there is no device '%s' in this network namespace: did you mean "
			      "'%s'? See 'sluice help attach'",
			      name, nearly);
	return failure("there is no device '%s' in this network namespace, and no option '%s': "
		       "options are %s",
		       name, name, keywords_format(text));
}

/* Before anything is made: are they there? */
static enum status names_check(const struct request *request)
{
	enum status status = OK;

	for (int i = 0; !status && i < request->count; i++)
		status = name_check(request->names[i], !i);
	return status;
}

/* --- Attaching ------------------------------------------------------------------------------ */

static json_t *attached_json(const struct gate *gate, const struct attachment *a, bool was_there)
{
	json_t *object = attachment_json(a);

	json_object_set_new(object, "gate", json_string(gate->name));
	json_object_set_new(object, "was_attached", json_boolean(was_there));
	return object;
}

static void attached_print(const struct gate *gate, const struct attachment *a, bool was_there)
{
	bool has_rules = gate->state->hosts || gate->state->prefixes;

	printf("%s: %s to gate '%s', hook %s, mode %s%s\n", a->device,
	       was_there ? "was attached already" : "attached", gate->name, hook_names[a->hook],
	       mode_names[a->mode], has_rules ? "" : "; no rule yet: it counts, and drops nothing");
}

static enum status attach_one(const struct gate *gate, const struct programs *programs,
			      const char *name, const struct request *request,
			      struct attachment *ret, bool *ret_was_there)
{
	struct device device;
	enum status status = device_find(name, &device);

	if (!status)
		status = attach_find(gate, &device, request->hook, request->mode, ret,
				     ret_was_there);
	if (status || *ret_was_there)
		return status;
	return attach_device(gate, programs, &device, request->hook, request->mode, ret,
			     ret_was_there);
}

/* All or none: what was attached before the trouble is detached again. */
static enum status attach_all(const struct gate *gate, const struct programs *programs,
			      const struct request *request, struct attachment *ret,
			      bool *ret_was_there)
{
	enum status status = OK;
	int done = 0;

	for (; done < request->count; done++) {
		status = attach_one(gate, programs, request->names[done], request, &ret[done],
				    &ret_was_there[done]);
		if (status)
			break;
	}
	while (status && done--)
		if (!ret_was_there[done])
			detach(gate, &ret[done]);
	return status;
}

/* Once all are attached, so that what is undone is not spoken of. */
static enum status advise(const struct gate *gate, const struct request *request,
			  const struct attachment *attached, const bool *was_there)
{
	enum status status = OK;

	for (int i = 0; !status && i < request->count; i++)
		if (!was_there[i])
			status = warn_attached(gate, &attached[i]);
	return status;
}

static enum status report(const struct context *context, const struct gate *gate,
			  const struct request *request, const struct attachment *attached,
			  const bool *was_there)
{
	json_t *list = context->json ? json_array() : NULL;

	for (int i = 0; i < request->count; i++) {
		if (context->json)
			json_array_append_new(list,
					      attached_json(gate, &attached[i], was_there[i]));
		else
			attached_print(gate, &attached[i], was_there[i]);
	}
	return context->json ? json_print(list) : OK;
}

enum status cmd_attach(const struct context *context, int argc, char **argv)
{
	struct attachment attached[ATTACHMENTS_MAX];
	bool was_there[ATTACHMENTS_MAX];
	struct programs programs = PROGRAMS_CLOSED;
	struct gate gate = GATE_CLOSED;
	struct request request = {0};
	enum status status = request_parse(argc, argv, &request);

	if (!status)
		status = names_check(&request);
	if (status)
		return status;
	status = gate_prepare(&gate, context->gate, &request);
	if (!status)
		status = programs_load(&gate, &programs);
	if (!status)
		status = attach_all(&gate, &programs, &request, attached, was_there);
	if (status)
		gate_undo(&gate);
	if (!status && gate.made)
		sizes_say_raised(&request.sizes, &gate.machine);
	if (!status)
		status = advise(&gate, &request, attached, was_there);
	if (!status)
		status = report(context, &gate, &request, attached, was_there);
	programs_close(&programs);
	gate_close(&gate);
	return status;
}
