// SPDX-License-Identifier: GPL-2.0
#include "program/writer.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define DEPTH_MAX 16 /* largest depth of nested objects and arrays */

static struct {
	FILE *out;
	bool is_json;
	bool is_begun;
	unsigned int depth;
	/* depth of the outermost open object of print_row(), or 0 if none is open */
	unsigned int line;
	char closes[DEPTH_MAX + 1];    /* bracket that closes each depth: '}' or ']' */
	bool has_items[DEPTH_MAX + 1]; /* an item was printed at this depth */
} writer;

static bool allocation_failed;

static void *allocate(size_t size)
{
	void *memory = malloc(size);

	allocation_failed |= !memory;
	return memory;
}

void print_begin(FILE *out, bool json)
{
	memset(&writer, 0, sizeof(writer));
	writer.out = out;
	writer.is_json = json;
	json_set_alloc_funcs(allocate, free);
	allocation_failed = false;
}

bool print_is_json(void)
{
	return writer.is_json;
}

bool print_is_begun(void)
{
	return writer.is_begun;
}

bool print_is_whole(void)
{
	return !allocation_failed;
}

/* --- JSON ----------------------------------------------------------------------------------- */

/* Writes a string as JSON in ASCII. Bytes that are not UTF-8 become '?'. */
static void string_write(const char *text)
{
	uint32_t code;
	size_t length;

	fputc('"', writer.out);
	for (; *text; text += length ?: 1) {
		length = text_character(text, &code);
		if (!length)
			code = '?';
		if (code == '"' || code == '\\')
			fprintf(writer.out, "\\%c", (int)code);
		else if (code == '\n')
			fputs("\\n", writer.out);
		else if (code >= 0x20 && code < 0x7f)
			fputc((int)code, writer.out);
		else if (code < 0x10000)
			fprintf(writer.out, "\\u%04x", code);
		else
			fprintf(writer.out, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10),
				0xdc00 + (code & 0x3ff));
	}
	fputc('"', writer.out);
}

/*
 * Begins a value in JSON: writes a comma and the key. In text, writes nothing, and returns false.
 */
static bool value_begin(const char *key)
{
	if (!writer.is_json)
		return false;
	writer.is_begun = true;
	if (writer.has_items[writer.depth])
		fputs(writer.line ? ", " : ",", writer.out);
	writer.has_items[writer.depth] = true;
	if (writer.depth && !writer.line)
		fprintf(writer.out, "\n%*s", 2 * (int)writer.depth, "");
	if (key) {
		string_write(key);
		fputs(": ", writer.out);
	}
	return true;
}

static void level_open(const char *key, char opens, char closes)
{
	if (!value_begin(key) || writer.depth == DEPTH_MAX)
		return;
	fputc(opens, writer.out);
	writer.closes[++writer.depth] = closes;
	writer.has_items[writer.depth] = false;
}

void print_object(const char *key)
{
	level_open(key, '{', '}');
}

void print_array(const char *key)
{
	level_open(key, '[', ']');
}

void print_row(const char *key)
{
	print_object(key);
	if (!writer.line)
		writer.line = writer.depth;
}

void print_end(void)
{
	char closes = writer.closes[writer.depth];

	if (!writer.depth)
		return;
	writer.depth--;
	if (writer.has_items[writer.depth + 1] && !writer.line)
		fprintf(writer.out, "\n%*s", 2 * (int)writer.depth, "");
	fputc(closes, writer.out);
	if (writer.line > writer.depth)
		writer.line = 0;
	if (!writer.depth) {
		fputc('\n', writer.out);
		writer.has_items[0] = false;
	}
}

/* --- Values --------------------------------------------------------------------------------- */

void print_string(const char *key, const char *format, const char *value)
{
	if (value_begin(key)) {
		if (value)
			string_write(value);
		else
			fputs("null", writer.out);
	} else if (format && value) {
		fprintf(writer.out, format, name_shown(value));
	}
}

void print_number(const char *key, const char *format, uint64_t value)
{
	if (value_begin(key))
		fprintf(writer.out, "%" PRIu64, value);
	else if (format)
		fprintf(writer.out, format, value);
}

void print_known(const char *key, const char *format, bool is_known, uint64_t value)
{
	if (is_known)
		print_number(key, format, value);
	else
		print_null(key);
}

void print_bool(const char *key, bool value)
{
	if (value_begin(key))
		fputs(value ? "true" : "false", writer.out);
}

void print_null(const char *key)
{
	print_string(key, NULL, NULL);
}

/* in JSON, print 1 as 1.0, so that parsers always read a float */
void print_real(const char *key, double value)
{
	char text[32];

	if (!value_begin(key))
		return;
	snprintf(text, sizeof(text), "%.15g", value);
	fprintf(writer.out, "%s%s", text, text[strcspn(text, ".en")] ? "" : ".0");
}

void print_text(const char *format, ...)
{
	va_list args;

	if (writer.is_json)
		return;
	va_start(args, format);
	vfprintf(writer.out, format, args);
	va_end(args);
}
