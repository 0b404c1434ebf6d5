/* SPDX-License-Identifier: GPL-2.0 */
/* The errors that a call has added: their ids, objects and places. */
#ifndef SLUICE_TEST_ERRORS_H
#define SLUICE_TEST_ERRORS_H

#include "base/error.h"
#include "test.h"

/* Fails unless the list has one error, with this id, whose object has this part. Empties the list. */
static inline void assert_one_error(const char *id, const char *part)
{
	const struct sl_error *error = error_last(0);

	if (!error)
		fail_msg("no error, not %s: %s", id, part);
	if (error_count() != 1 || strcmp(error->id, id) || !strstr(error->object, part))
		fail_msg("%u errors, [%s] %s: %s; %s, not [%s] %s", error_count(), error->id,
			 error->object, error->text, error->hint, id, part);
	error_drop(0);
}

#endif
