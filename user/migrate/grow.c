// SPDX-License-Identifier: GPL-2.0
#include "migrate/grow.h"

#include <stdio.h>

#include "gate/gate_make.h"
#include "migrate/takeover.h"

/* Room for all sizes, as "hosts 16k -> 1m, prefixes 16k -> 32k". */
#define GROWN_TEXT (SIZES * (2 * SIZE_TEXT + 16))

static const char *grown_format(const struct gate_sizes *has, const struct gate_sizes *sizes,
				char text[GROWN_TEXT])
{
	char from[SIZE_TEXT], to[SIZE_TEXT];
	size_t length = 0;

	*text = '\0';
	for (unsigned int i = 0; i < SIZES; i++)
		if (size_told(has, i) != size_told(sizes, i))
			length += snprintf(text + length, GROWN_TEXT - length, "%s%s %s -> %s",
					   length ? ", " : "", size_names[i],
					   size_format(size_told(has, i), from),
					   size_format(size_told(sizes, i), to));
	return text;
}

enum status gate_grow(struct gate *gate, const struct gate_sizes *sizes)
{
	const char *missing = caps_missing();
	char text[GROWN_TEXT];
	struct gate_sizes has;
	enum status status = gate_sizes_read(gate, &has);

	if (status)
		return status;
	grown_format(&has, sizes, text);
	if (missing)
		return failure("gate '%s' is full, and to grow it (%s) needs %s: run this as root, "
			       "or delete rules first",
			       gate->name, text, missing);
	status = resize(gate, sizes);
	if (status)
		note("gate '%s' was to grow (%s), and stays as it was: while it cannot, delete "
		     "rules first",
		     gate->name, text);
	else
		note("gate '%s' grew: %s", gate->name, text);
	return status;
}
