/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules: types of the values that users write. Each type has one parser, for the command line,
 * rules files, list files and shell completion.
 */
#ifndef SLUICE_VALUE_H
#define SLUICE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "sluice.h"

enum value_extent {
	VALUE_WORD,    /* one word */
	VALUE_NUMBERS, /* a word, and all numbers and units after it: "10 kpps 100 mbit" */
	VALUE_WORDS,   /* all words up to the next keyword of the command */
};

struct value_type {
	const char *name; /* placeholder in help, such as "RATE" or "src|dst" */
	/*
	 * Parses a text, and stores the value in *ret. Returns 0. If the text is invalid, adds an
	 * error, leaves *ret unchanged, and returns -EINVAL. what: keyword before the value, for
	 * errors, or NULL.
	 */
	int (*parse)(const struct value_type *type, const char *what, const char *text, void *ret);
	const char *expected;	  /* hint in errors, such as "write 65536, 64k or 4m"; or NULL */
	const char *const *words; /* the words that the type accepts; NULL if it accepts any text */
	unsigned int word_count;
	uint64_t least, most; /* bounds of a number, or of a time in ns */
	enum value_extent extent;
	bool is_pair; /* the option can be given twice; stores an array of two texts */
};

static inline int value_parse(const struct value_type *type, const char *what, const char *text,
			      void *ret)
{
	return type->parse(type, what, text, ret);
}

#define TIME_MAX_NS                                                                                \
	(730 * 86400000000000ULL) /* the longest time is 2 years, below SL_BURST_TICKS_MAX */

/* Types of values. The comments name the C type in which each type stores its value. */
extern const struct value_type value_flag;   /* bool: true or false, yes or no */
extern const struct value_type value_size;   /* uint32_t, from texts such as 65536, 64k, 4m */
extern const struct value_type value_rate;   /* struct value_amount with enum sl_rate_unit */
extern const struct value_type value_burst;  /* struct value_amount with enum sl_burst_unit */
extern const struct value_type value_amount; /* struct value_amount, in packets or bytes */
extern const struct value_type value_time;   /* uint64_t in ns, up to 2 years: 250ms, 1h 30m */
extern const struct value_type value_moment; /* struct value_end: 2026-11-21T13:00:00Z */

struct value_amount {
	uint64_t number;
	uint8_t unit;
};

struct value_end {
	uint32_t until; /* end of an entry, as until_at() returns it */
	bool has_passed;
};

/*
 * Parsers for types with bounds, words or a placeholder. number_parse() and choice_parse() store an
 * unsigned int. time_parse() stores a uint64_t. raw_parse() stores the pointer to the text.
 */
int number_parse(const struct value_type *type, const char *what, const char *text, void *ret);
int time_parse(const struct value_type *type, const char *what, const char *text, void *ret);
int choice_parse(const struct value_type *type, const char *what, const char *text, void *ret);
int raw_parse(const struct value_type *type, const char *what, const char *text, void *ret);

#define VALUE_NUMBER(lowest, highest, hint)                                                        \
	{                                                                                          \
		.name = "N", .parse = number_parse, .expected = (hint), .least = (lowest),         \
		.most = (highest)                                                                  \
	}
#define VALUE_TIME(lowest, highest)                                                                \
	{                                                                                          \
		.name = "TIME", .parse = time_parse, .expected = VALUE_TIME_HINT,                  \
		.least = (lowest), .most = (highest), .extent = VALUE_NUMBERS                      \
	}
/* Returns a pointer to a type that stores the text itself. The caller parses the text later. */
#define VALUE_TEXT(placeholder, ...)                                                               \
	(&(const struct value_type){.name = (placeholder), .parse = raw_parse, ##__VA_ARGS__})
/*
 * Initializes a type for one of several words. The stored value is the index of the word plus
 * `first`.
 */
#define VALUE_CHOICE(placeholder, array, first)                                                    \
	{                                                                                          \
		.name = (placeholder), .parse = choice_parse, .words = (array),                    \
		.word_count = ARRAY_SIZE(array), .least = (first)                                  \
	}
#define VALUE_TIME_HINT "write 250ms, 30s, 10min, 1h30m or 7d"

/* --- Errors --------------------------------------------------------------------------------- */

#define TEXT_CUT 128 /* size of a buffer for a shortened text in an error */

/*
 * Copies a text of `length` bytes. If it has more than 120 bytes, cuts it between two characters.
 */
const char *text_cut(const char *text, size_t length, char cut[TEXT_CUT]);

#define VALUE_OBJECT 160

/* Formats the object of an error: "what 'text'", or "'text'" if `what` is NULL. */
const char *value_object(char object[VALUE_OBJECT], const char *what, const char *text);
#define object_of(what, text) value_object((char[VALUE_OBJECT]){0}, what, text)

/* Adds an error that has the type's `expected` as hint. Returns -EINVAL. */
int value_refuse(const struct value_type *type, const char *id, const char *what, const char *text,
		 const char *problem);

#define WORDS_TEXT 256

/* Joins words as in "name, rate or burst". */
const char *words_join(const char *const words[], unsigned int count, char text[WORDS_TEXT]);

/* --- Formats -------------------------------------------------------------------------------- */

#define UNITS_TEXT 32 /* size of a buffer for a rate, burst, amount or time */
#define SIZE_TEXT  16

#define SIZE_MAX_ENTRIES (1U << 26) /* the largest size of a map that users can specify */

/* Format values as words that can be parsed again. */
const char *rate_format(const struct sl_limit_spec *spec, char text[UNITS_TEXT]);
const char *burst_format(const struct sl_limit_spec *spec, char text[UNITS_TEXT]);
const char *amount_format(uint64_t amount, uint8_t rate_unit, char text[UNITS_TEXT]);
const char *time_format(uint64_t ns, char text[UNITS_TEXT]);
const char *size_format(uint32_t size, char text[SIZE_TEXT]);

/* Formats a remaining time such as "27s". Rounds up to whole seconds, or to whole ms below 1 s. */
const char *left_format(uint64_t ns, char text[UNITS_TEXT]);

/* --- Numbers and units ---------------------------------------------------------------------- */

/* Returns whether a word is a unit of a rate, an amount or a time. */
bool unit_is_known(const char *word);

/* The highest rate that value_rate accepts, in packets per second. */
#define RATE_PPS_MAX 200000000ULL

/* Returns whether value_rate could have stored this rate. A rate from a map must be checked. */
bool rate_is_sound(const struct sl_limit_spec *spec);

/* Returns a rate per second, in packets or bits. A window of N packets per T has rate N / T. */
double rate_per_second(const struct sl_limit_spec *spec);

/*
 * Parses a number from 0 to `most` that has no leading zeros. Returns the text after the number.
 * Returns NULL if the text does not begin with such a number.
 */
const char *number_read(const char *text, unsigned int most, unsigned int *ret);

#endif
