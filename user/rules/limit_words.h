/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules: parses limits from words, and formats limits as words. The fields of a limit are parsed
 * one by one into a `struct spec`, from a command line or a rules file. spec_make() makes limits
 * from it.
 */
#ifndef SLUICE_LIMIT_WORDS_H
#define SLUICE_LIMIT_WORDS_H

#include "rules/limit.h"
#include "rules/value.h"

enum spec_field {
	SPEC_NAME,    /* "dns" */
	SPEC_RATE,    /* such as "10kpps" or "10kpps 100mbit" */
	SPEC_BURST,   /* such as "2500" or "2500 64kB" */
	SPEC_WINDOW,  /* such as "1000 per 1min" or "10MB per 1h" */
	SPEC_GROUPS,  /* "5" */
	SPEC_SHAPE,   /* "10mbit" */
	SPEC_HORIZON, /* "200ms" */
	SPEC_MATCH,   /* such as "udp port 53 vlan 10" */
	SPEC_PER,     /* such as "24", "24/56" or "32,24,16" */
	SPEC_KEY,     /* "src", "dst" */
	SPEC_ACTION,  /* such as "drop", "observe" or "block 30s escalate 2 max 1h" */
	SPEC_START,   /* "full", "empty" or "share" */
	SPEC_SHARED,  /* "yes", "no" or "block" */
	SPEC_FIELDS,
};

/* The keywords of `set`, which are also the keys of a limit in a rules file. */
extern const char *const spec_names[SPEC_FIELDS];

/* The names of enum sl_kind. */
extern const char *const kind_names[SL_KINDS];

/*
 * The parsed fields of a limit. If all bytes are 0, no field is given. Each length of `per
 * 32,24,16` makes a limit. Then rate, burst, window, shape and horizon have one value for each
 * length, or one value for all.
 */
struct spec {
	uint16_t given;			    /* bit N is set if the user specified field N */
	uint8_t count[SPEC_FIELDS];	    /* number of values of each field */
	struct limit limits[SL_LIMITS_MAX]; /* a single value is stored in all elements */
};

/*
 * The type of each field. It stores into a struct spec, and sets the bit of its field in `given`. A
 * later value replaces an earlier value.
 */
extern const struct value_type spec_types[SPEC_FIELDS];

/* Initializes a type that parses a field, and has another placeholder in help. */
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

/* Returns whether a field is not given although the kind of the limit has it. */
bool spec_accepts(const struct spec *spec, enum spec_field field);

/* The limits made from one struct spec. */
struct limits {
	struct limit list[SL_LIMITS_MAX];
	unsigned int count;
};

/*
 * Makes the limits of a prefix, and checks that the fields fit each other. Exactly one of `rate`,
 * `window` and `shape` must be given. The default name consists of the words of the match; other
 * defaults are in burst_default() and limit_defaults.
 *
 * On `default`, a single length of `per` is the IPv4 length if it is at most 32, and otherwise the
 * IPv6 length. Several lengths must descend. Then the first limit has the name, and each other
 * limit has the name and its length: all, all-24. On `default`, its IPv6 length is 32 more.
 *
 * Returns 0; or -EINVAL, and stores in *ret_field the field that the error is about, or SPEC_FIELDS
 * if it is about no field.
 */
int spec_make(const struct spec *spec, const struct sl_prefix *prefix, struct limits *ret,
	      enum spec_field *ret_field);

/* Makes the budget for new sources from a rate and a burst. Returns as spec_make() does. */
int spec_make_budget(const struct spec *spec, struct limit *ret, enum spec_field *ret_field);

/*
 * Sets the default burst: one second of the rate, but at least 64 packets or 256 kB, which hold any
 * packet that the kernel merges. Honest clients send bursts far above their rate.
 */
void burst_default(struct sl_limit_spec *spec);

/* --- Formats -------------------------------------------------------------------------------- */

#define SPEC_TEXT 160 /* size of a buffer for any formatted field */

extern const enum spec_field kind_fields[SL_KINDS]; /* the field that specifies each kind */

/* The defaults of a limit that matches any packet. */
extern const struct limit limit_defaults;

/*
 * Formats one field as words that parse to the same value. Returns NULL if the kind lacks the
 * field, or if the value is the default. Three values are formatted even if they are the default:
 * the field of the kind, the burst of a token bucket, and the name of a limit with a match.
 */
const char *spec_format(const struct limit *limit, const struct sl_prefix *prefix,
			enum spec_field field, char text[SPEC_TEXT]);

/* Formats a field like spec_format(), but also if it is the default. */
const char *spec_format_whole(const struct limit *limit, const struct sl_prefix *prefix,
			      enum spec_field field, char text[SPEC_TEXT]);

/* Formats the words of `set` that make a limit, without the prefix: " name dns rate 200pps ...". */
#define LIMIT_TEXT 1024
const char *limit_format(const struct limit *limit, const struct sl_prefix *prefix,
			 char text[LIMIT_TEXT]);

#endif
