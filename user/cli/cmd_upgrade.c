// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>

#include "attach/published.h"
#include "attach/replace.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/report.h"
#include "gate/gate.h"
#include "migrate/open.h"

static int upgrade_run(const struct context *context, const void *args)
{
	struct replacements replacements = {.count = 0};
	struct gate gate = GATE_CLOSED;
	int err = gate_open(&gate, context->gate, GATE_CHANGE, NULL)
			  ?: programs_replace(&gate, &gate, &replacements);

	(void)args;
	if (!err) {
		attachments_publish(&gate);
		print_array(NULL);
		for (unsigned int i = 0; i < replacements.count; i++) {
			const struct attachment *a = &replacements.one[i].attachment;

			print_row(NULL, NULL);
			print_attachment(a, NULL);
			print_string("gate", NULL, gate.name);
			print_text("%s: hook %s:", name_shown(a->device), hook_names[a->hook]);
			print_number("program_id_before", " program %" PRIu64,
				     replacements.one[i].before);
			print_text(" -> %u", a->program_id);
			print_row_end();
		}
		print_end();
		if (!replacements.count)
			print_text("gate '%s': no device is attached: nothing to upgrade\n",
				   gate.name);
	}
	replacements_close(&replacements);
	gate_close(&gate);
	return err;
}

static const char upgrade_details[] =
	"Rules, buckets and counters stay, and no packet passes unfiltered. If an upgrade was\n"
	"interrupted, run it again. A gate that a version with another schema made is refused.";

const struct command command_upgrade = {
	.name = "upgrade",
	.brief = "put this command's program under a running gate",
	.details = upgrade_details,
	.run = upgrade_run,
};
