// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "attach.h"
#include "command.h"
#include "gate.h"
#include "prefix.h"
#include "report.h"
#include "rules.h"
#include "units.h"

struct request {
	char **names; /* of devices */
	int count;
	enum hook hook;
	enum mode mode;
};

/* DEV... comes first; the first keyword ends it. */
static enum status request_parse(int argc, char **argv, struct request *ret)
{
	struct request request = {.names = argv + 1, .hook = HOOK_XDP, .mode = MODE_AUTO};
	bool given[2] = {false};
	int i = 1;

	for (; i < argc && strcmp(argv[i], "hook") && strcmp(argv[i], "mode"); i++)
		request.count++;
	for (; i < argc; i++) {
		bool is_hook = !strcmp(argv[i], "hook");
		const char *value;

		if (!is_hook && strcmp(argv[i], "mode"))
			return unexpected(argv[0], argv[i]);
		if (given[is_hook])
			return misuse("attach: '%s' is given twice", argv[i]);
		given[is_hook] = true;
		value = keyword_value(argc, argv, &i);
		if (!value)
			return MISUSED;
		if (is_hook ? !hook_parse(value, &request.hook) : !mode_parse(value, &request.mode))
			return MISUSED;
	}
	if (!request.count)
		return misuse("attach: which device? See 'sluice help attach'");
	if (request.count > ATTACHMENTS_MAX)
		return misuse("attach: at most %d devices", ATTACHMENTS_MAX);
	*ret = request;
	return mode_check(request.hook, request.mode);
}

/* A rule whose burst holds no whole frame of the device would stop it dead. */
static enum status check_rules_hold(const struct gate *gate, const struct device *device)
{
	const struct sl_policy *policies[SL_POLICIES_MAX];
	unsigned int count = rules_list(gate, policies);
	char prefix[PREFIX_TEXT], burst[UNITS_TEXT];

	for (unsigned int i = 0; i < count; i++) {
		const struct sl_limit *limit = &policies[i]->limit;

		if (!limit_holds_frame(limit, device_frame_bytes(device)))
			return fail("the rule of %s in gate '%s' has burst %s, too little for a "
				    "frame of "
				    "%s (%u B): raise the burst first",
				    prefix_format(&policies[i]->prefix, prefix), gate->name,
				    burst_format(&limit->spec, burst), device->name,
				    device_frame_bytes(device));
	}
	return OK;
}

static json_t *attached_json(const struct gate *gate, const struct attachment *a, bool was_there)
{
	json_t *object = attachment_json(a);

	json_object_set_new(object, "gate", json_string(gate->name));
	json_object_set_new(object, "was_attached", json_boolean(was_there));
	return object;
}

static void attached_print(const struct gate *gate, const struct attachment *a, bool was_there)
{
	const struct sl_policy *policies[SL_POLICIES_MAX];

	printf("%s: %s to gate '%s', hook %s, mode %s", a->device,
	       was_there ? "was attached already" : "attached", gate->name, hook_names[a->hook],
	       mode_names[a->mode]);
	puts(rules_list(gate, policies) ? "" : "; no rule yet: it counts, and drops nothing");
}

/* All or none: what was attached before the trouble is detached again. */
static enum status attach_all(const struct gate *gate, const struct programs *programs,
			      const struct request *request, struct attachment *ret,
			      bool *ret_was_there)
{
	enum status status = OK;
	int done = 0;

	for (; !status && done < request->count; done++) {
		struct device device;

		status = device_find(request->names[done], &device);
		if (!status)
			status = check_rules_hold(gate, &device);
		if (!status)
			status = attach_device(gate, programs, &device, request->hook,
					       request->mode, &ret[done], &ret_was_there[done]);
		if (status)
			break;
	}
	while (status && done--)
		if (!ret_was_there[done])
			detach(gate, &ret[done]);
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
	struct device device;
	enum status status = request_parse(argc, argv, &request);

	/* before anything is made: are they there? */
	for (int i = 0; !status && i < request.count; i++)
		status = device_find(request.names[i], &device);
	if (status)
		return status;
	status = gate_open_or_make(&gate, context->gate);
	if (!status)
		status = programs_load(&gate, &programs);
	if (!status)
		status = attach_all(&gate, &programs, &request, attached, was_there);
	if (!status)
		status = report(context, &gate, &request, attached, was_there);
	else
		gate_undo(&gate);
	programs_close(&programs);
	gate_close(&gate);
	return status;
}
