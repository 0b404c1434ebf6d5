// SPDX-License-Identifier: GPL-2.0
/* user/base/log.h without a word: what a fuzzer tries is wrong a million times. */
#include <stddef.h>

#include "base/log.h"

enum status failure(const char *format, ...)
{
	(void)format;
	return FAILED;
}

enum status misuse(const char *format, ...)
{
	(void)format;
	return MISUSED;
}

void note(const char *format, ...)
{
	(void)format;
}

void warning(const char *format, ...)
{
	(void)format;
}

void inform(const char *format, ...)
{
	(void)format;
}

bool log_mute(bool mute)
{
	(void)mute;
	return false;
}

const char *log_place(const char *place)
{
	(void)place;
	return NULL;
}

const char *why(int err)
{
	(void)err;
	return "";
}
