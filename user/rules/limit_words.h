/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules: parses limits from words, and formats limits as words. Stores each field of a limit, from
 * a command line or a rules file, in a `struct spec`. Then spec_make() makes limits from the
 * fields.
 */
#ifndef SLUICE_LIMIT_WORDS_H
#define SLUICE_LIMIT_WORDS_H

#include "rules/limit.h"
#include "rules/value.h"

enum spec_field {
	SPEC_NAME,    /* "dns" */
	SPEC_RATE,    /* a rate, such as "10kpps" or "10kpps 100mbit" */
	SPEC_BURST,   /* a burst, such as "2500" or "2500 64kB" */
	SPEC_WINDOW,  /* a window, such as "1000 per 1min" or "10MB per 1h" */
	SPEC_GROUPS,  /* "5" */
	SPEC_SHAPE,   /* "10mbit" */
	SPEC_HORIZON, /* "200ms" */
	SPEC_MATCH,   /* a match, such as "udp port 53 vlan 10" */
	SPEC_PER,     /* lengths of keys, such as "24", "24/56" or "32,24,16" */
	SPEC_KEY,     /* "src", "dst" */
	SPEC_ACTION,  /* an action, such as "drop", "observe" or "block 30s escalate 2 max 1h" */
	SPEC_START,   /* the level of a new state: "full", "empty" or "share" */
	SPEC_SHARED,  /* whether nodes share the limit: "yes", "no" or "block" */
	SPEC_FIELDS,
};

/* The keywords of command `set`. A rules file uses the same words as keys of a limit. */
extern const char *const spec_names[SPEC_FIELDS];

/* The names of the kinds of limits. */
extern const char *const kind_names[SL_KINDS];

/*
 * The parsed fields of a limit; zero if no field was given. Each length of `per 32,24,16` makes one
 * limit. Rate, burst, window, shape and horizon then have one value per length, or one value for
 * all lengths.
 */
struct spec {
	uint16_t given;			    /* bit F is set if the user specified field F */
	uint8_t count[SPEC_FIELDS];	    /* number of values of each field */
	struct limit limits[SL_LIMITS_MAX]; /* one per length; a single value is in all elements */
};

/*
 * The type of each field. The parser of a type stores the value in a struct spec, and sets the
 * field's bit in `given`. A later value of a field replaces an earlier value.
 */
extern const struct value_type spec_types[SPEC_FIELDS];

/* Initializes the type of a field with a placeholder for help texts. */
int spec_field_parse(const struct value_type *type, const char *what, const char *text, void *ret);
#define SPEC_TYPE(field, placeholder, ...)                                                         \
	{                                                                                          \
		.name = (placeholder), .parse = spec_field_parse, .least = (field),                \
		.extent = __VA_ARGS__                                                              \
	}

static inline bool spec_has(const struct spec *spec, enum spec_field field)
{
	return spec->given >> field & 1;
}

/*
 * Returns whether a user can still specify a field: it must be absent, and the limit's kind must
 * accept it.
 */
bool spec_accepts(const struct spec *spec, enum spec_field field);

/* All limits that spec_make() makes from one struct spec. */
struct limits {
	struct limit list[SL_LIMITS_MAX];
	unsigned int count;
};

/*
 * Makes the limits of a prefix, and checks whether their fields fit each other. Exactly one of
 * `rate`, `window` and `shape` must be given. The default name is made from the words of the match.
 * Other defaults are in burst_default() and limit_defaults. Several lengths of `per` must descend,
 * and each makes one limit. The first limit has the given name. The other limits have this name and
 * their length, as in all-24. If the prefix is `default`, a single length applies to IPv4 up to 32,
 * and to IPv6 above 32. Several lengths apply to IPv4, and the lengths for IPv6 are larger by 32.
 * Returns 0, or -EINVAL. On failure, stores in *ret_field which field is wrong, or SPEC_FIELDS if
 * no single field is wrong.
 */
int spec_make(const struct spec *spec, const struct sl_prefix *prefix, struct limits *ret,
	      enum spec_field *ret_field);

/*
 * Makes the budget for new sources from its rate and burst. Returns 0, or -EINVAL with *ret_field
 * like spec_make().
 */
int spec_make_budget(const struct spec *spec, struct limit *ret, enum spec_field *ret_field);

/*
 * Sets the default burst: one second of the rate, but at least 64 packets or 256 kB. It is this
 * large because honest clients send bursts far above their rate, and because the kernel merges
 * packets.
 */
void burst_default(struct sl_limit_spec *spec);

/* --- Formats -------------------------------------------------------------------------------- */

#define SPEC_TEXT 352 /* size of a buffer for any formatted field */

extern const enum spec_field kind_fields[SL_KINDS]; /* SPEC_RATE, SPEC_WINDOW, SPEC_SHAPE */

/* The defaults of a limit whose match accepts any packet. */
extern const struct limit limit_defaults;

/*
 * Formats one field as words that can be parsed again. Returns NULL if the limit's kind does not
 * have this field, or if the field has its default value. Three fields are formatted even if they
 * have their default value: the field of the kind, the burst of a token bucket, and the name of a
 * limit with a match.
 */
const char *spec_format(const struct limit *limit, const struct sl_prefix *prefix,
			enum spec_field field, char text[SPEC_TEXT]);

/* Formats a field like spec_format(), but formats a field with its default value, too. */
const char *spec_format_whole(const struct limit *limit, const struct sl_prefix *prefix,
			      enum spec_field field, char text[SPEC_TEXT]);

/* Formats a limit as the words of `set`, without the prefix: " name dns rate 200pps ...". */
#define LIMIT_TEXT 1024
const char *limit_format(const struct limit *limit, const struct sl_prefix *prefix,
			 char text[LIMIT_TEXT]);

#endif
