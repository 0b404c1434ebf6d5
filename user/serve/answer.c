// SPDX-License-Identifier: GPL-2.0
#include "serve/answer.h"

#include <stdio.h>
#include <stdlib.h>

static atomic_size_t bytes; /* bytes of all answers passed to answer_count() */

void answer_take(struct answer *answer)
{
	atomic_fetch_add(&answer->references, 1);
}

void answer_drop(struct answer *answer)
{
	if (!answer || atomic_fetch_sub(&answer->references, 1) > 1)
		return;
	atomic_fetch_sub(&bytes, answer->counted);
	free(answer->text);
	free(answer);
}

void answer_count(struct answer *answer)
{
	answer->counted = answer->length;
	atomic_fetch_add(&bytes, answer->counted);
}

size_t answers_bytes(void)
{
	return atomic_load(&bytes);
}

/* Appends a JSON string. Replaces each character that JSON would escape by '?'. */
static void string_append(FILE *out, const char *key, const char *value, const char *end)
{
	fprintf(out, "    \"%s\": \"", key);
	for (const unsigned char *c = (const unsigned char *)value; *c; c++)
		fputc(*c < 0x20 || *c >= 0x7f || *c == '"' || *c == '\\' ? '?' : *c, out);
	fprintf(out, "\"%s\n", end);
}

/* Does not use the writer (program/writer.h), because the thread that reads documents uses it. */
struct answer *answer_error(unsigned int status, const struct sl_error *error)
{
	struct answer *answer = calloc(1, sizeof(*answer));
	FILE *out = answer ? open_memstream(&answer->text, &answer->length) : NULL;

	if (!out) {
		free(answer);
		return NULL;
	}
	answer->references = 1;
	answer->status = status;
	answer->type = "application/json";
	fputs("{\n  \"error\": {\n", out);
	string_append(out, "id", error->id, ",");
	string_append(out, "object", error->object ?: "", ",");
	string_append(out, "text", error->text, ",");
	string_append(out, "hint", error->hint ?: "", "");
	fputs("  }\n}\n", out);
	if (fclose(out)) {
		answer_drop(answer);
		return NULL;
	}
	return answer;
}

struct answer *answer_refusal(unsigned int status, const char *id, const char *text)
{
	return answer_error(status, &(struct sl_error){.id = id, .text = (char *)text});
}
