// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <string.h>

#include "attach/attach.h"
#include "attach/attachment.h"
#include "attach/published.h"
#include "attach/shaping.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/report.h"
#include "cli/warnings.h"
#include "gate/gate_make.h"
#include "migrate/open.h"
#include "rules/sizes.h"

struct attach_args {
	struct operands devices;
	unsigned int hook; /* enum hook */
	unsigned int mode; /* enum mode */
	bool no_fq;	   /* limits may shape without the qdisc fq */
	uint32_t size[SIZES];
};

/* The attachments, in the order of the devices. */
struct attaching {
	struct attachment made[ATTACHMENTS_MAX];
	bool existed[ATTACHMENTS_MAX];
};

/* --- Checks --------------------------------------------------------------------------------- */

/* Checks that a device exists. After the first one, an unknown word may be a misspelt keyword. */
static int name_check(const char *name, bool is_first)
{
	const char *nearly = keyword_nearly(&command_attach, name);
	struct device device;

	if (is_first || if_nametoindex(name))
		return device_find(name, &device);
	if (nearly)
		return error_misuse("no-device", NULL,
				    "there is no device '%s' in this network namespace; did you "
				    "mean '%s'? See 'sluice help attach'",
				    name, nearly);
	return error_add(ENODEV, "no-device", NULL,
			 "there is no device '%s' in this network namespace, and no such word; "
			 "see 'ip link' and 'sluice help attach'",
			 name);
}

/* A gate that exists keeps its sizes: only apply --resize changes those that are stated. */
static int sizes_check(const struct gate *gate, const uint32_t size[SIZES])
{
	struct gate_sizes has;
	int err = gate_sizes_read(gate, &has);

	for (unsigned int i = 0; !err && i < SIZES; i++)
		if (size[i] && size[i] != size_specified(&has, i))
			return error_misuse("other-size", NULL,
					    "gate '%s' has %s %u, and not %u; only 'apply FILE "
					    "--resize' changes that",
					    gate->name, size_names[i], size_specified(&has, i),
					    size[i]);
	return err;
}

/* Checks that the devices can do what the limits in force shape. */
static int shaping_check_names(const struct gate *gate, const struct attach_args *args)
{
	struct shaping shaping;
	int err = shaping_read(gate, &shaping);

	for (unsigned int i = 0; !err && shaping.any && i < args->devices.count; i++) {
		struct attachment wanted;
		struct device device;

		err = device_find(args->devices.words[i], &device);
		if (err)
			break;
		wanted = attachment_of(&device, args->hook);
		err = attach_find_hook(&device, args->mode, false, &wanted.hook)
			?: shaping_check_hooks(gate, &shaping, &wanted)
			?: shaping_check_device(&shaping, &wanted, args->no_fq);
	}
	return err;
}

/* --- Attaching ------------------------------------------------------------------------------ */

static int attach_one(const struct gate *gate, struct programs *programs, const char *name,
		      const struct attach_args *args, struct attachment *ret, bool *ret_existed)
{
	enum hook hook = args->hook;
	struct device device;
	int err = device_find(name, &device)
		  ?: attach_find_hook(&device, args->mode, true, &hook)
		  ?: attach_find(gate, &device, hook, args->mode, ret, ret_existed);

	if (err || *ret_existed)
		return err;
	return attach_device(gate, programs, &device, hook, args->mode, ret, ret_existed);
}

/* Attaches all devices or none: a failure detaches those that were attached before it. */
static int attach_all(const struct gate *gate, const struct attach_args *args,
		      struct attaching *ret)
{
	_cleanup_(programs_close) struct programs programs = PROGRAMS_CLOSED;

	for (unsigned int i = 0; i < args->devices.count; i++) {
		int err = attach_one(gate, &programs, args->devices.words[i], args, &ret->made[i],
				     &ret->existed[i]);

		if (!err)
			continue;
		while (i--)
			if (!ret->existed[i])
				detach(gate, &ret->made[i]);
		return err;
	}
	return 0;
}

/* Warns, too, after all devices are attached: a failure would undo what the warnings are about. */
static int attached_print(const struct gate *gate, unsigned int count,
			  const struct attaching *attaching)
{
	bool has_rules = gate->state->hosts || gate->state->prefixes;
	struct attachment made[ATTACHMENTS_MAX];
	unsigned int made_count = 0;
	int err;

	for (unsigned int i = 0; i < count; i++)
		if (!attaching->existed[i])
			made[made_count++] = attaching->made[i];
	err = warn_attached(gate, made, made_count);
	if (err)
		return err;
	print_array(NULL);
	for (unsigned int i = 0; i < count; i++) {
		const struct attachment *a = &attaching->made[i];

		print_attachment_of(gate, a, NULL,
				    attaching->existed[i] ? "was attached already to"
							  : "attached to");
		print_bool("was_attached", attaching->existed[i]);
		print_text(", mode %s%s\n", mode_names[a->mode],
			   has_rules ? "" : "; no rule yet: it counts, and drops nothing");
		print_end();
	}
	print_end();
	return 0;
}

static int attach_run(const struct context *context, const void *data)
{
	const struct attach_args *args = data;
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	struct attaching attaching;
	struct gate_sizes sizes = {0};
	int err;

	if (args->devices.count > ATTACHMENTS_MAX)
		return error_misuse("too-many", "attach", "at most %d devices", ATTACHMENTS_MAX);
	err = mode_check(args->hook, args->mode);
	for (unsigned int i = 0; !err && i < args->devices.count; i++)
		err = name_check(args->devices.words[i], !i);
	if (err)
		return err;
	for (unsigned int i = 0; i < SIZES; i++)
		if (args->size[i])
			size_set(&sizes, i, args->size[i]);
	err = gate_open(&gate, context->gate, GATE_MAKE, &sizes);
	if (err)
		return err;
	if (!gate.made)
		err = sizes_check(&gate, args->size);
	if (!err)
		gate.state->sizes_stated |= sizes_bits(&sizes);
	err = err ?: shaping_check_names(&gate, args) ?: attach_all(&gate, args, &attaching);
	if (err) {
		gate_undo(&gate);
		return err;
	}
	attachments_publish(&gate);
	return attached_print(&gate, args->devices.count, &attaching);
}

#define SIZE_FIELD(which) offsetof(struct attach_args, size[which])

static const struct word attach_words[] = {
	{"DEV", OPERANDS, NULL, offsetof(struct attach_args, devices), NULL},
	{"hook", KEYWORD, &value_hook, offsetof(struct attach_args, hook),
	 "xdp (default): in the driver, the cheapest; ingress, egress: in TC"},
	{"mode", KEYWORD, &value_mode, offsetof(struct attach_args, mode),
	 "of xdp: auto (default) uses native; if the driver has none, and on a tap, it uses hook\n"
	 "ingress, and on an ifb hook egress, and reports that. native; generic: a packet that\n"
	 "the kernel, or its sender, has merged of many counts as one there, as it does on a\n"
	 "tap.\n"
	 "Of ingress and egress: auto (default), tcx, clsact"},
	{"no-fq", KEYWORD, NULL, offsetof(struct attach_args, no_fq),
	 "attach although a limit shapes and the device lacks the qdisc fq"},
	{"sources", KEYWORD, &value_size, SIZE_FIELD(SIZE_SOURCES),
	 "states that the gate tracks, one for each source and limit; 262144 by default: 91 to\n"
	 "181 bytes each, allocated at once"},
	{"buckets", KEYWORD, &value_size, SIZE_FIELD(SIZE_BUCKETS),
	 "entries of buckets4, and of buckets6: sources that CPUs serve from buckets of their\n"
	 "own, and count for 'sluice sources'; 16384 by default with up to 6 CPUs: 416 bytes for\n"
	 "each CPU and 168 more for N of both, allocated at once"},
	{"policies", KEYWORD, &value_size, SIZE_FIELD(SIZE_POLICIES), "prefixes that have limits"},
	{"hosts", KEYWORD, &value_size, SIZE_FIELD(SIZE_HOSTS),
	 "rules of whole addresses, of each family"},
	{"prefixes", KEYWORD, &value_size, SIZE_FIELD(SIZE_PREFIXES), "rules of anything shorter"},
};

static const char attach_details[] =
	"Without a rule nothing is dropped, only counted. Makes the gate if it does not exist.\n"
	"sources and the words below it are sizes of a gate that this makes, 65536, 64k or 4m;\n"
	"only 'sluice apply FILE --resize' changes the sizes of a gate that exists. Sizes for\n"
	"rules that are not stated are small at first, and grow. 'sluice status' prints the\n"
	"memory of a gate.";

const struct command command_attach = {
	.name = "attach",
	.brief = "filter what a device receives or sends",
	.details = attach_details,
	.question = "which device?",
	COMMAND_WORDS(attach_words, struct attach_args),
	.run = attach_run,
};
