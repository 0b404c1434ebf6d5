// SPDX-License-Identifier: GPL-2.0
/* user/base/error.h without text: what a fuzzer tries is wrong a million times. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/error.h"

int error_add(int err, const char *id, const char *object, const char *format, ...)
{
	(void)id;
	(void)object;
	(void)format;
	return err ? -abs(err) : -EIO;
}

int error_misuse(const char *id, const char *object, const char *format, ...)
{
	(void)id;
	(void)object;
	(void)format;
	return -EINVAL;
}

void error_warn(const char *id, const char *object, const char *format, ...)
{
	(void)id;
	(void)object;
	(void)format;
}

void error_notice(const char *id, const char *object, const char *format, ...)
{
	(void)id;
	(void)object;
	(void)format;
}

void error_inform(const char *id, const char *object, const char *format, ...)
{
	(void)id;
	(void)object;
	(void)format;
}

unsigned int error_count(void)
{
	return 0;
}

const struct sl_error *error_last(unsigned int mark)
{
	(void)mark;
	return NULL;
}

void error_drop(unsigned int mark)
{
	(void)mark;
}

void error_place(unsigned int mark, const char *place)
{
	(void)mark;
	(void)place;
}

const char *why(int err)
{
	(void)err;
	return "";
}
