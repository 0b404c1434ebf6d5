// SPDX-License-Identifier: GPL-2.0
#include "gate_names.h"

#include <stdio.h>
#include <string.h>

#include "bpffs.h"
#include "gate_dir.h"
#include "netns.h"

/* Of more gates than this, a message names the first. */
#define NAMES_SHOWN 4

struct names {
	unsigned int count;
	char first[GATE_NAME + 1];
	char text[NAMES_SHOWN * (GATE_NAME + sizeof("'', ")) + sizeof(" ...")];
};

/* For gates_for_each(). */
static enum status name_add(const char *gate, void *data)
{
	struct names *names = data;
	size_t length = strlen(names->text);

	if (!names->count)
		snprintf(names->first, sizeof(names->first), "%s", gate);
	if (names->count < NAMES_SHOWN)
		snprintf(names->text + length, sizeof(names->text) - length, "%s'%s'",
			 length ? ", " : "", gate);
	else if (names->count == NAMES_SHOWN)
		snprintf(names->text + length, sizeof(names->text) - length, " ...");
	names->count++;
	return OK;
}

enum status gates_only(const char *usual, char name[GATE_NAME + 1])
{
	struct names names = {0};
	bool exists = false;
	enum status status = gate_exists(usual, &exists);

	if (!status && !exists)
		status = gates_for_each(name_add, &names);
	if (!status)
		snprintf(name, GATE_NAME + 1, "%s", names.count == 1 ? names.first : "");
	return status;
}

enum status no_such_gate(const char *name)
{
	struct names names = {0};

	if (gates_for_each(name_add, &names))
		return FAILED;
	if (!names.count && bpffs_refuse_private())
		return FAILED;
	if (!names.count)
		return fail("there is no gate '%s': make it with 'sluice %s-g %s attach DEV'", name,
			    netns_typed(), name);
	return fail("there is no gate '%s', but %s: write 'sluice -g %s ...', or make '%s' with "
		    "'sluice %s-g %s attach DEV'",
		    name, names.text, names.first, name, netns_typed(), name);
}
