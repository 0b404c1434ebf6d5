/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules: a limit in words. The fields of a limit are parsed one by one into a `struct spec`, from a
 * command line or a rules file; spec_make() makes limits of them.
 */
#ifndef SLUICE_LIMIT_WORDS_H
#define SLUICE_LIMIT_WORDS_H

#include "rules/limit.h"
#include "rules/value.h"

enum spec_field {
	SPEC_NAME,    /* "dns" */
	SPEC_RATE,    /* "10kpps", "10kpps 100mbit" */
	SPEC_BURST,   /* "2500", "2500 64kB" */
	SPEC_WINDOW,  /* "1000 per 1min", "10MB per 1h" */
	SPEC_GROUPS,  /* "5" */
	SPEC_SHAPE,   /* "10mbit" */
	SPEC_HORIZON, /* "200ms" */
	SPEC_MATCH,   /* "udp port 53 vlan 10" */
	SPEC_PER,     /* "24", "24/56", "32,24,16" */
	SPEC_KEY,     /* "src", "dst" */
	SPEC_ACTION,  /* "drop", "observe", "block 30s escalate 2 max 1h" */
	SPEC_START,   /* "full", "empty", "share" */
	SPEC_SHARED,  /* "yes", "no", "block" */
	SPEC_FIELDS,
};

/* The keywords of `set`, and the keys of a rules file. */
extern const char *const spec_names[SPEC_FIELDS];

/* The names of enum sl_kind. */
extern const char *const kind_names[SL_KINDS];

/*
 * The parsed fields of a limit. All 0: no field is given. Several lengths, `per 32,24,16`, make a
 * limit each; rate, burst, window, shape and horizon then have one value for each, or one for all.
 */
struct spec {
	uint16_t given;			    /* a bit for each field */
	uint8_t count[SPEC_FIELDS];	    /* of values */
	struct limit limits[SL_LIMITS_MAX]; /* one value is in all of them */
};

/*
 * The types of the fields. Each stores into a struct spec, and sets the bit of its field. A value
 * that is given replaces the previous one.
 */
extern const struct value_type spec_types[SPEC_FIELDS];

/* The type of a field under another placeholder. */
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

/* Whether a field is missing that limits of the kind of the spec have. */
bool spec_accepts(const struct spec *spec, enum spec_field field);

/* The limits that one set of words makes. */
struct limits {
	struct limit list[SL_LIMITS_MAX];
	unsigned int count;
};

/*
 * Makes the limits of a prefix, and checks that the fields fit each other. One of `rate`, `window`
 * and `shape` is required. Defaults: the words of the match as name, burst_default(), and
 * limit_defaults. On `default`, one length after `per` is the length of IPv4 keys if it is at most
 * 32, and otherwise of IPv6 keys. If there are several lengths, narrow first, the first limit has the name,
 * the others the name and their length: all, all-24; on `default` their IPv6 keys are 32 bits longer.
 * Returns 0; or -EINVAL, and the field that the error is about (SPEC_FIELDS: no field).
 */
int spec_make(const struct spec *spec, const struct sl_prefix *prefix, struct limits *ret,
	      enum spec_field *ret_field);

/* Makes the budget that all newcomers of a policy share, of a rate and a burst. */
int spec_make_budget(const struct spec *spec, struct limit *ret, enum spec_field *ret_field);

/*
 * Sets the default burst: one second of the rate, at least 64 packets or 256 kB, which hold any
 * packet that the kernel merges. Honest clients send in bursts, far above their rate.
 */
void burst_default(struct sl_limit_spec *spec);

/* --- Formats -------------------------------------------------------------------------------- */

#define SPEC_TEXT 160 /* room for any formatted field */

extern const enum spec_field kind_fields[SL_KINDS]; /* the field that specifies each kind */

/* The defaults of a limit that matches any packet. */
extern const struct limit limit_defaults;

/*
 * Formats one field in words that parse to the same value. Returns NULL if the limit's kind does
 * not have it, or if it is the default; never for the field that specifies the kind, `burst` of a
 * bucket, and names other than "all", which `del` needs.
 */
const char *spec_format(const struct limit *limit, const struct sl_prefix *prefix,
			enum spec_field field, char text[SPEC_TEXT]);

/* Formats a field as spec_format(), even if it is the default. */
const char *spec_format_whole(const struct limit *limit, const struct sl_prefix *prefix,
			      enum spec_field field, char text[SPEC_TEXT]);

/* Formats the words of `set` that make a limit, after the prefix: " name dns rate 200pps ...". */
#define LIMIT_TEXT 1024
const char *limit_format(const struct limit *limit, const struct sl_prefix *prefix,
			 char text[LIMIT_TEXT]);

#endif
