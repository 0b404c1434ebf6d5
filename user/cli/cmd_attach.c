// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "attach/attach.h"
#include "attach/attachment.h"
#include "attach/published.h"
#include "attach/shaping.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/report.h"
#include "cli/warnings.h"
#include "gate/gate.h"
#include "gate/gate_make.h"
#include "migrate/open.h"
#include "rules/sizes.h"

struct request {
	char **names; /* of devices */
	int count;
	enum hook hook;
	enum mode mode;
	bool no_fq;		 /* limits may shape without the qdisc fq */
	struct gate_sizes sizes; /* 0: not said */
};

/* --- Words ---------------------------------------------------------------------------------- */

struct attach_args {
	struct operands devices;
	const char *hook;
	const char *mode;
	bool no_fq;
	const char *size[SIZES];
};

static int request_parse(const struct attach_args *args, struct request *ret)
{
	struct request request = {
		.names = args->devices.words,
		.count = args->devices.count,
		.hook = HOOK_XDP,
		.mode = MODE_AUTO,
		.no_fq = args->no_fq,
	};
	int status = OK;

	if (request.count > ATTACHMENTS_MAX)
		return misuse("attach: at most %d devices", ATTACHMENTS_MAX);
	if (args->hook && !hook_parse(args->hook, &request.hook))
		return MISUSED;
	if (args->mode && !mode_parse(args->mode, &request.mode))
		return MISUSED;
	for (int i = 0; !status && i < SIZES; i++)
		if (args->size[i])
			status = size_parse(i, args->size[i], &request.sizes);
	*ret = request;
	return status ? status : mode_check(request.hook, request.mode);
}

/* --- The gate ------------------------------------------------------------------------------- */

/* A gate that exists keeps its sizes: only apply --resize changes those that are stated. */
static int refuse_other_sizes(const struct gate *gate, const struct gate_sizes *stated)
{
	struct gate_sizes wanted = *stated, has;
	int status = gate_sizes_read(gate, &has);

	for (unsigned int i = 0; !status && i < SIZES; i++) {
		uint32_t size = size_told(&wanted, i), old = size_told(&has, i);

		if (size && size != old)
			status = misuse("gate '%s' has %s %u, and not %u: only 'apply FILE "
					"--resize' changes that",
					gate->name, size_names[i], old, size);
	}
	return status;
}

/* --- Devices -------------------------------------------------------------------------------- */

#define KEYWORDS_TEXT 96

/* The keywords of `attach`, as "hook, mode, ...". */
static const char *keywords_format(char text[KEYWORDS_TEXT])
{
	int length = 0;

	*text = '\0';
	for (unsigned int i = 0; i < command_attach.word_count; i++)
		if (command_attach.words[i].kind == KEYWORD && command_attach.words[i].type)
			length += snprintf(text + length, KEYWORDS_TEXT - length, "%s%s",
					   length ? ", " : "", command_attach.words[i].name);
	return text;
}

/* Checks that a device exists. Behind the first one an unknown word may be a misspelt keyword. */
static int name_check(const char *name, bool is_first)
{
	char text[KEYWORDS_TEXT];
	struct device device;
	const char *nearly;

	if (is_first || if_nametoindex(name))
		return device_find(name, &device);
	nearly = keyword_nearly(&command_attach, name);
	if (nearly)
		return misuse("there is no device '%s' in this network namespace: did you mean "
			      "'%s'? See 'sluice help attach'",
			      name, nearly);
	return failure("there is no device '%s' in this network namespace, and no option '%s': "
		       "options are %s",
		       name, name, keywords_format(text));
}

/* Checks that the devices can do what the limits in force shape. */
static int shaping_check_names(const struct gate *gate, const struct request *request)
{
	struct shaping shaping;
	struct device device;
	int status = shaping_read(gate, &shaping);

	for (int i = 0; !status && shaping.any && i < request->count; i++) {
		struct attachment wanted;

		status = device_find(request->names[i], &device);
		if (status)
			break;
		wanted = attachment_of(&device, request->hook);
		status = attach_find_hook(&device, request->mode, false, &wanted.hook);
		if (!status)
			status = shaping_check_hooks(gate, &shaping, &wanted);
		if (!status)
			status = shaping_check_device(&shaping, &wanted, request->no_fq);
	}
	return status;
}

/* --- Attaching ------------------------------------------------------------------------------ */

static int attach_one(const struct gate *gate, struct programs *programs, const char *name,
		      const struct request *request, struct attachment *ret, bool *ret_was_there)
{
	enum hook hook = request->hook;
	struct device device;
	int status = device_find(name, &device);

	if (!status)
		status = attach_find_hook(&device, request->mode, true, &hook);
	if (!status)
		status = attach_find(gate, &device, hook, request->mode, ret, ret_was_there);
	if (status || *ret_was_there)
		return status;
	return attach_device(gate, programs, &device, hook, request->mode, ret, ret_was_there);
}

/* Attaches all devices or none: a failure detaches those that were attached before it. */
static int attach_all(const struct gate *gate, const struct request *request,
		      struct attachment *ret, bool *ret_was_there)
{
	struct programs programs = PROGRAMS_CLOSED;
	int status = OK;
	int done = 0;

	for (; done < request->count; done++) {
		status = attach_one(gate, &programs, request->names[done], request, &ret[done],
				    &ret_was_there[done]);
		if (status)
			break;
	}
	while (status && done--)
		if (!ret_was_there[done])
			detach(gate, &ret[done]);
	programs_close(&programs);
	return status;
}

/* Also warns, once all devices are attached: a failure would undo what the warnings are about. */
static int report(const struct context *context, const struct gate *gate,
		  const struct request *request, const struct attachment *attached,
		  const bool *was_there)
{
	json_t *list = context->json ? json_array() : NULL, *object;
	bool has_rules = gate->state->hosts || gate->state->prefixes;
	struct attachment made[ATTACHMENTS_MAX];
	unsigned int made_count = 0;
	int status;

	for (int i = 0; i < request->count; i++)
		if (!was_there[i])
			made[made_count++] = attached[i];
	status = warn_attached(gate, made, made_count);
	for (int i = 0; !status && i < request->count; i++) {
		if (!context->json) {
			printf("%s: %s to gate '%s', hook %s, mode %s%s\n",
			       name_shown(attached[i].device),
			       was_there[i] ? "was attached already" : "attached", gate->name,
			       hook_names[attached[i].hook], mode_names[attached[i].mode],
			       has_rules ? "" : "; no rule yet: it counts, and drops nothing");
			continue;
		}
		object = attachment_json(&attached[i]);
		json_object_set_new(object, "gate", json_string(gate->name));
		json_object_set_new(object, "was_attached", json_boolean(was_there[i]));
		json_array_append_new(list, object);
	}
	if (!status && context->json)
		return json_print(list);
	json_decref(list);
	return status;
}

static int attach_run(const struct context *context, const void *args)
{
	struct attachment attached[ATTACHMENTS_MAX];
	bool was_there[ATTACHMENTS_MAX];
	struct gate gate = GATE_CLOSED;
	struct request request = {0};
	int status = request_parse(args, &request);

	for (int i = 0; !status && i < request.count; i++)
		status = name_check(request.names[i], !i);
	if (status)
		return status;
	status = gate_open(&gate, context->gate, GATE_MAKE, &request.sizes);
	if (!status && !gate.made)
		status = refuse_other_sizes(&gate, &request.sizes);
	if (!status)
		gate.state->sizes_stated |= sizes_bits(&request.sizes);
	if (!status)
		status = shaping_check_names(&gate, &request);
	if (!status)
		status = attach_all(&gate, &request, attached, was_there);
	if (status)
		gate_undo(&gate);
	if (!status)
		attachments_publish(&gate);
	if (!status)
		status = report(context, &gate, &request, attached, was_there);
	gate_close(&gate);
	return status;
}

#define SIZE_FIELD(which) offsetof(struct attach_args, size[which])

static const struct word attach_words[] = {
	{"DEV", OPERANDS, NULL, offsetof(struct attach_args, devices), NULL},
	{"hook", KEYWORD, VALUE_TEXT("xdp|ingress|egress"), offsetof(struct attach_args, hook),
	 "xdp (default): in the driver, the cheapest; ingress, egress: in TC"},
	{"mode", KEYWORD, VALUE_TEXT("auto|native|generic|tcx|clsact"),
	 offsetof(struct attach_args, mode),
	 "of xdp: auto (default) uses native; if the driver has none, and on a tap, it uses\n"
	 "hook ingress, and on an ifb hook egress, and reports that. native; generic: a packet\n"
	 "that the kernel, or its sender, has merged of many counts as one there, as it\n"
	 "does on a tap.\n"
	 "Of ingress and egress: auto (default), tcx, clsact"},
	{"no-fq", KEYWORD, NULL, offsetof(struct attach_args, no_fq),
	 "attach although a limit shapes and the device lacks the qdisc fq"},
	{"sources", KEYWORD, VALUE_TEXT("N"), SIZE_FIELD(SIZE_SOURCES),
	 "levels that the gate tracks, one for each source and limit; 262144 by default:\n"
	 "91 to 181 bytes each, allocated at once"},
	{"buckets", KEYWORD, VALUE_TEXT("N"), SIZE_FIELD(SIZE_BUCKETS),
	 "entries of buckets4, and of buckets6: sources that CPUs serve from buckets of\n"
	 "their own, and count for 'sluice sources'; 16384 by default with up to 6 CPUs:\n"
	 "416 bytes for each CPU and 168 more for N of both, allocated at once"},
	{"policies", KEYWORD, VALUE_TEXT("N"), SIZE_FIELD(SIZE_POLICIES),
	 "prefixes that have limits"},
	{"hosts", KEYWORD, VALUE_TEXT("N"), SIZE_FIELD(SIZE_HOSTS),
	 "rules of whole addresses, of each family"},
	{"prefixes", KEYWORD, VALUE_TEXT("N"), SIZE_FIELD(SIZE_PREFIXES),
	 "rules of anything shorter"},
};

static const char attach_details[] =
	"Without a rule nothing is dropped, only counted. Makes the gate if it is not there yet.\n"
	"sources and the words below it are sizes of the gate that this makes, 65536, 64k or 4m;\n"
	"what a gate has, only 'sluice apply FILE --resize' changes. Those of rules that are not\n"
	"stated are small at first, and grow. 'sluice status' shows what memory a gate takes.";

const struct command command_attach = {
	.name = "attach",
	.brief = "filter what a device receives or sends",
	.details = attach_details,
	.question = "which device?",
	COMMAND_WORDS(attach_words, struct attach_args),
	.run = attach_run,
};
