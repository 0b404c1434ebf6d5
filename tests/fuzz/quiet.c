// SPDX-License-Identifier: GPL-2.0
/*
 * Replaces user/base/error.c. Most inputs cause errors, and formatting the errors would slow down
 * the fuzzer.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/error.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

int error_add(int err, const char *id, const char *object, const char *format, ...)
{
	return err ? -abs(err) : -EIO;
}

int error_misuse(const char *id, const char *object, const char *format, ...)
{
	return -EINVAL;
}

void error_warn(const char *id, const char *object, const char *format, ...)
{
}

void error_notice(const char *id, const char *object, const char *format, ...)
{
}

void error_inform(const char *id, const char *object, const char *format, ...)
{
}

unsigned int error_count(void)
{
	return 0;
}

const struct sl_error *error_last(unsigned int mark)
{
	return NULL;
}

void error_drop(unsigned int mark)
{
}

void error_place(unsigned int mark, const char *place)
{
}

const char *why(int err)
{
	return "";
}
