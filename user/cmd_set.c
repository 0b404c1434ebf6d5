// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "attachment.h"
#include "command.h"
#include "gate.h"
#include "prefix.h"
#include "rules.h"
#include "units.h"

/* The burst depends on the rate, so the words are collected first. */
static enum status spec_parse(int argc, char **argv, struct sl_limit_spec *ret)
{
	const char *rate = NULL, *burst = NULL;
	enum status status;

	for (int i = 2; i < argc; i++) {
		const char **value = !strcmp(argv[i], "rate")	 ? &rate
				     : !strcmp(argv[i], "burst") ? &burst
								 : NULL;

		if (!value)
			return unexpected(argv[0], argv[i]);
		if (*value)
			return misuse("set: '%s' is given twice", argv[i]);
		*value = keyword_value(argc, argv, &i);
		if (!*value)
			return MISUSED;
	}
	if (!rate)
		return misuse("set: at what rate? See 'sluice help set'");
	status = rate_parse(rate, ret);
	if (status)
		return status;
	if (burst)
		return burst_parse(burst, ret);
	burst_default(ret);
	return OK;
}

/* A burst that holds no whole frame of an attached device would stop it dead. */
static enum status check_holds_frames(const struct gate *gate, const struct sl_limit_spec *spec)
{
	char burst[UNITS_TEXT];
	struct device device;
	struct sl_limit limit;
	enum status status = limit_compile(spec, &gate->machine, &limit);

	if (!status)
		status = attachments_longest_frame(gate, &device);
	if (status || limit_holds_frame(&limit, device_frame_bytes(&device)))
		return status;
	return misuse("burst %s is too little for a frame of %s: it takes %uB at least",
		      burst_format(spec, burst), device.name, device_frame_bytes(&device));
}

static enum status report(const struct context *context, const struct sl_prefix *prefix,
			  const struct sl_limit_spec *spec)
{
	char text[PREFIX_TEXT], rate[UNITS_TEXT], burst[UNITS_TEXT];

	prefix_format(prefix, text);
	if (context->json)
		return json_print(json_pack("{s:s, s:s, s:s, s:s}", "gate", context->gate, "prefix",
					    prefix_format(prefix, text), "rate",
					    rate_format(spec, rate), "burst",
					    burst_format(spec, burst)));
	printf("%s: each source %s, burst %s\n", prefix_format(prefix, text),
	       rate_format(spec, rate), burst_format(spec, burst));
	return OK;
}

enum status cmd_set(const struct context *context, int argc, char **argv)
{
	struct gate gate = GATE_CLOSED;
	struct sl_limit_spec spec = {0};
	struct sl_limit limit;
	struct sl_prefix prefix;
	enum status status;

	if (argc < 2)
		return misuse("set: default, or which prefix? See 'sluice help set'");
	status = prefix_parse(argv[1], &prefix);
	if (!status)
		status = spec_parse(argc, argv, &spec);
	if (!status)
		status = limit_compile(&spec, &(struct machine){1, 1},
				       &limit); /* says what is wrong */
	if (!status)
		status = gate_open_to_change(&gate, context->gate);
	if (!status)
		status = check_holds_frames(&gate, &spec);
	if (!status)
		status = rules_set(&gate, &prefix, &spec);
	if (!status)
		status = report(context, &prefix, &spec);
	gate_close(&gate);
	return status;
}
