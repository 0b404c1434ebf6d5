// SPDX-License-Identifier: GPL-2.0
#include "replay/unchosen.h"

#include <errno.h>
#include <inttypes.h>

#include "base/error.h"
#include "base/text.h"

#define INTERFACES_SHOWN 8

/*
 * Adds the error that no packet is of interface `wanted`. It lists the interfaces of the capture.
 */
static void interface_explain(const struct capture_totals *totals, const char *id,
			      const char *wanted)
{
	char list[INTERFACES_SHOWN * (CAPTURE_NAME + 2)] = "";
	size_t length = 0;

	for (unsigned int i = 0; i < totals->interfaces && i < INTERFACES_SHOWN; i++) {
		const char *name = totals->interface[i].name;
		char digits[16];

		snprintf(digits, sizeof(digits), "%u", totals->interface[i].number);
		length += snprintf(list + length, sizeof(list) - length, "%s%s", i ? ", " : "",
				   *name ? name : digits);
	}
	error_add(ENODATA, id, "--interface", "no packet is of interface '%s'; the capture has %s",
		  name_shown(wanted), list);
}

void unchosen_explain(const struct capture_totals *totals, const struct capture_choice *choice,
		      const char *id, const char *name)
{
	bool is_out = choice->direction == CAPTURE_OUT;

	if (!totals->left_out)
		error_add(ENODATA, id, name, "the capture has no packets");
	else if (totals->other_way == totals->left_out)
		error_add(ENODATA, id, name,
			  "no packet was chosen: all %" PRIu64 " were %s; try %s", totals->left_out,
			  is_out ? "received" : "sent", is_out ? "--in" : "--out");
	else if (choice->interface && !choice->has_to && !totals->other_way)
		interface_explain(totals, id, choice->interface);
	else
		error_add(ENODATA, id, name,
			  "no packet of %" PRIu64 " was chosen; check --in, --out, --to and "
			  "--interface",
			  totals->left_out);
}
