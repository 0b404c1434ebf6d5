// SPDX-License-Identifier: GPL-2.0
#include "gate_option.h"

#include <stdio.h>
#include <string.h>

const char *gate_option(const char *gate)
{
	static char text[64]; /* a gate's name has at most GATE_NAME letters */

	if (!strcmp(gate, GATE_USUAL))
		return "";
	snprintf(text, sizeof(text), "-g %s ", gate);
	return text;
}
