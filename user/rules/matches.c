// SPDX-License-Identifier: GPL-2.0
#include "rules/matches.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "rules/prefix.h"
#include "rules/value.h"

#define PORTS_HINT "write 53, or 80,443, or 1024-65535"
#define VLAN_MAX   4094
#define DSCP_MAX   63
#define WORDS_MAX  24 /* more than the words of a valid match plus NULL */

/* The fields that each kind of packet has, in addition to the fields of IP. */
#define PORTS	 (SL_FIELD_SPORT | HAS_PORT)
#define HAS_PORT 0x100 /* `port` and `vlan`: bits after those of enum sl_field */
#define HAS_VLAN 0x200

/* The kinds of packets. If several names mean the same fact, the first name is printed. */
static const struct match_kind {
	const char *name;
	enum sl_fact fact;
	unsigned int fields;
} kinds[] = {
	{"any", SL_FACT_ANY, PORTS},
	{"tcp", SL_FACT_TCP, PORTS | SL_FIELD_FLAGS},
	{"udp", SL_FACT_UDP, PORTS},
	{"icmp", SL_FACT_ICMP, SL_FIELD_ICMP},
	{"tcp-syn", SL_FACT_SYN, PORTS | SL_FIELD_FLAGS},
	{"fragment", SL_FACT_FRAGMENT, 0},
	{"quic-initial", SL_FACT_QUIC, PORTS},
	{"tls-hello", SL_FACT_TLS, PORTS | SL_FIELD_FLAGS},
	{"dns-query", SL_FACT_DNS, PORTS},
	{"proto", SL_FACT_PROTO, 0},
	{"all", SL_FACT_ANY, PORTS},
};

#define KINDS ARRAY_SIZE(kinds)

/* TCP flags, by bit in byte 13 of the TCP header. */
static const char *const flag_names[] = {"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"};

/* ICMP messages, and their types in ICMP and ICMPv6. */
static const struct icmp_name {
	const char *name;
	uint16_t type[SL_FAMILIES];
} icmp_names[] = {
	{"echo-request", {8, 128}},
	{"echo-reply", {0, 129}},
	{"destination-unreachable", {3, 1}},
	{"packet-too-big", {SL_ICMP_NONE, 2}},
	{"time-exceeded", {11, 3}},
	{"parameter-problem", {12, 4}},
	{"redirect", {5, 137}},
	{"timestamp-request", {13, SL_ICMP_NONE}},
	{"timestamp-reply", {14, SL_ICMP_NONE}},
	{"router-solicitation", {10, 133}},
	{"router-advertisement", {9, 134}},
	{"neighbor-solicitation", {SL_ICMP_NONE, 135}},
	{"neighbor-advertisement", {SL_ICMP_NONE, 136}},
};

bool proto_is_extension(uint8_t proto)
{
	static const uint8_t extensions[] = {0, 43, 44, 51, 60};

	return memchr(extensions, proto, sizeof(extensions));
}

static const struct match_kind *kind_find(const char *name)
{
	for (size_t i = 0; i < KINDS; i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

static const struct match_kind *kind_of(uint16_t fact)
{
	for (size_t i = 0; i < KINDS; i++)
		if (kinds[i].fact == fact)
			return &kinds[i];
	return NULL;
}

#define refuse(text, ...) error_misuse("bad-match", object_of("match", text), __VA_ARGS__)

static bool is_word(const char *word, const char *keyword)
{
	return word && !strcmp(word, keyword);
}

static const char *range_format(const struct sl_range *range, char text[UNITS_TEXT])
{
	snprintf(text, UNITS_TEXT, range->first == range->last ? "%u" : "%u-%u", range->first,
		 range->last);
	return text;
}

/*
 * Parses a range of 16-bit numbers, such as "80" or "1024-65535". Returns the text after it, or
 * NULL.
 */
static const char *range_read(const char *text, unsigned int ret[2])
{
	const char *p = number_read(text, UINT16_MAX, &ret[0]);

	ret[1] = ret[0];
	return p && *p == '-' ? number_read(p + 1, UINT16_MAX, &ret[1]) : p;
}

/* Parses a number. Returns false if the word is not a number in `least`..`most`. */
static bool number_parse_word(const char *word, unsigned int least, unsigned int most,
			      unsigned int *ret)
{
	const char *end = word ? number_read(word, most, ret) : NULL;

	return end && !*end && *ret >= least;
}

/* --- TCP flags and types of ICMP ------------------------------------------------------------- */

int flags_read(const char *text, uint8_t *ret_mask, uint8_t *ret_flags)
{
	uint8_t mask = 0, flags = 0;

	do {
		bool is_clear = *text == '!';
		size_t length = strcspn(text += is_clear, ",");
		unsigned int bit = 0;

		while (bit < ARRAY_SIZE(flag_names) && (strlen(flag_names[bit]) != length ||
							strncmp(flag_names[bit], text, length)))
			bit++;
		if (bit == ARRAY_SIZE(flag_names) || mask >> bit & 1)
			return -EINVAL;
		mask |= 1U << bit;
		flags |= !is_clear << bit;
		text += length;
	} while (*text++);
	*ret_mask = mask;
	*ret_flags = flags;
	return 0;
}

const char *flags_format(uint8_t mask, uint8_t flags, char text[PORTS_TEXT])
{
	size_t length = 0;

	*text = '\0';
	for (unsigned int bit = 0; bit < ARRAY_SIZE(flag_names); bit++)
		if (mask >> bit & 1)
			length += snprintf(text + length, PORTS_TEXT - length, "%s%s%s",
					   length ? "," : "", flags >> bit & 1 ? "" : "!",
					   flag_names[bit]);
	return text;
}

int icmp_type_read(const char *text, uint16_t ret[SL_FAMILIES])
{
	unsigned int number;

	for (size_t i = 0; i < ARRAY_SIZE(icmp_names); i++)
		if (!strcmp(icmp_names[i].name, text)) {
			memcpy(ret, icmp_names[i].type, sizeof(icmp_names[i].type));
			return 0;
		}
	if (!number_parse_word(text, 0, UINT8_MAX, &number))
		return -EINVAL;
	ret[SL_IPV4] = ret[SL_IPV6] = number;
	return 0;
}

/* Returns the name of a message with these types. Returns "" if both types are the same number. */
static const char *icmp_type_name(const uint16_t type[SL_FAMILIES])
{
	for (size_t i = 0; i < ARRAY_SIZE(icmp_names); i++)
		if (!memcmp(type, icmp_names[i].type, sizeof(icmp_names[i].type)))
			return icmp_names[i].name;
	return type[SL_IPV4] == type[SL_IPV6] && type[SL_IPV4] <= UINT8_MAX ? "" : NULL;
}

const char *icmp_type_format(const uint16_t type[SL_FAMILIES], char text[PORTS_TEXT])
{
	const char *name = icmp_type_name(type);

	if (name && *name)
		return name;
	snprintf(text, PORTS_TEXT, "%u", type[SL_IPV4]);
	return text;
}

/* --- The words of a match ------------------------------------------------------------------- */

/* A match that is being parsed. */
struct parsing {
	const char *text; /* the whole match, for errors */
	const char *name; /* name of the kind; NULL if it was not given */
	struct sl_match match;
};

/* Parses a list of ports, such as "80,8000-8080". */
static int ports_parse(const char *text, const char *list, struct sl_range *ports, uint8_t *count)
{
	char range[UNITS_TEXT], other[UNITS_TEXT];
	const char *p = list;

	do {
		unsigned int numbers[2] = {0};
		struct sl_range port;

		p = range_read(p, numbers);
		if (!p || (*p && *p != ','))
			return refuse(text, "'%s' is not a list of ports; " PORTS_HINT, list);
		port = (struct sl_range){.first = numbers[0], .last = numbers[1]};
		range_format(&port, range);
		if (port.first > port.last)
			return refuse(text, "the first port of %s is higher than the last", range);
		for (int i = 0; i < *count; i++)
			if (port.first <= ports[i].last && ports[i].first <= port.last)
				return refuse(text, "ports %s and %s overlap; write each port once",
					      range_format(&ports[i], other), range);
		if (*count == SL_PORTS_MAX)
			return refuse(text, "more than %d ports and ranges", SL_PORTS_MAX);
		ports[(*count)++] = port;
	} while (*p++);
	return 0;
}

static int port_parse(const char *value, struct parsing *parsing)
{
	return ports_parse(parsing->text, value, parsing->match.port, &parsing->match.ports);
}

static int sport_parse(const char *value, struct parsing *parsing)
{
	return ports_parse(parsing->text, value, parsing->match.sport, &parsing->match.sports);
}

struct sl_prefix match_to_prefix(const struct sl_match *match)
{
	struct sl_prefix prefix = {.bits = SL_FAMILY_BITS + match->to_bits,
				   .family = htonl(match->to_family)};

	memcpy(prefix.addr, match->to, sizeof(prefix.addr));
	return prefix;
}

static void to_mask_make(uint32_t bits, __be32 mask[4])
{
	memset(mask, 0, 4 * sizeof(*mask));
	for (uint32_t i = 0; i < bits && i < 128; i++)
		mask[i / 32] |= htonl(1U << (31 - i % 32));
}

static int to_parse(const char *value, struct parsing *parsing)
{
	struct sl_match *match = &parsing->match;
	struct sl_prefix prefix;
	int err = prefix_parse(value, &prefix);

	if (!err && !prefix.bits)
		return refuse(parsing->text,
			      "'%s' covers all addresses; write a prefix, such as "
			      "192.0.2.0/24",
			      value);
	if (err)
		return err;
	match->to_family = ntohl(prefix.family);
	match->to_bits = prefix.bits - SL_FAMILY_BITS;
	memcpy(match->to, prefix.addr, sizeof(match->to));
	to_mask_make(match->to_bits, match->to_mask);
	return 0;
}

static int flags_parse(const char *value, struct parsing *parsing)
{
	int err = flags_read(value, &parsing->match.tcp_mask, &parsing->match.tcp_flags);

	return err ? refuse(parsing->text,
			    "'%s' is not a list of TCP flags; write syn,!ack: of fin, syn, rst, "
			    "psh, ack, urg, ece and cwr, each once",
			    value)
		   : 0;
}

static int icmp_parse(const char *value, struct parsing *parsing)
{
	int err = icmp_type_read(value, parsing->match.icmp_type);

	return err ? refuse(parsing->text,
			    "'%s' is not a type of ICMP; write a number, 0 to 255, or a name, "
			    "such as echo-request",
			    value)
		   : 0;
}

static int length_parse(const char *value, struct parsing *parsing)
{
	unsigned int numbers[2] = {0};
	const char *end = range_read(value, numbers);

	if (!end || *end || numbers[0] > numbers[1])
		return refuse(parsing->text,
			      "'%s' is not a length of IP packets; write 60, or 1000-1500", value);
	parsing->match.length = (struct sl_range){.first = numbers[0], .last = numbers[1]};
	return 0;
}

static int dscp_parse(const char *value, struct parsing *parsing)
{
	unsigned int number;

	if (!number_parse_word(value, 0, DSCP_MAX, &number))
		return refuse(parsing->text, "'%s' is not a DSCP; write a number, 0 to %d", value,
			      DSCP_MAX);
	parsing->match.dscp = number;
	return 0;
}

static int vlan_parse(const char *value, struct parsing *parsing)
{
	unsigned int number;

	if (!number_parse_word(value, 1, VLAN_MAX, &number))
		return refuse(parsing->text, "not a VLAN; write vlan and a number, 1 to %d",
			      VLAN_MAX);
	parsing->match.vlan = number;
	return 0;
}

#define IP_FIELDS (SL_FIELD_TO | SL_FIELD_LENGTH | SL_FIELD_DSCP | HAS_VLAN)

/* The words that are followed by a value, in the order in which they are printed. */
static const struct match_word {
	const char *name;
	unsigned int field;
	int (*parse)(const char *value, struct parsing *parsing);
	const char *full; /* the word after a kind that has the field, for errors */
	const char *hint; /* an example of a value, if the value is missing */
} match_words[] = {
	{"flags", SL_FIELD_FLAGS, flags_parse, "'tcp flags ...'", "write flags syn,!ack"},
	{"icmp-type", SL_FIELD_ICMP, icmp_parse, "'icmp-type ...' alone",
	 "write icmp-type echo-request"},
	{"sport", SL_FIELD_SPORT, sport_parse, "'tcp sport ...' or 'udp sport ...'", PORTS_HINT},
	{"port", HAS_PORT, port_parse, "'tcp port ...' or 'udp port ...'", PORTS_HINT},
	{"to", SL_FIELD_TO, to_parse, NULL, "write to 192.0.2.0/24"},
	{"length", SL_FIELD_LENGTH, length_parse, NULL, "write length 1000-1500"},
	{"dscp", SL_FIELD_DSCP, dscp_parse, NULL, "write dscp 46"},
	{"vlan", HAS_VLAN, vlan_parse, NULL, "write vlan 10"},
};

#define MATCH_WORDS ARRAY_SIZE(match_words)

static const struct match_word *word_of(const char *name)
{
	if (!strcmp(name, "dport"))
		name = "port";
	for (size_t i = 0; i < MATCH_WORDS; i++)
		if (!strcmp(match_words[i].name, name))
			return &match_words[i];
	return NULL;
}

/* Returns the kind of packet that has these fields, if no kind is given. */
static enum sl_fact kind_implied(unsigned int fields)
{
	return fields & SL_FIELD_FLAGS	? SL_FACT_TCP
	       : fields & SL_FIELD_ICMP ? SL_FACT_ICMP
					: SL_FACT_ANY;
}

/* Returns the fields of a match: match->fields, HAS_PORT and HAS_VLAN. */
static unsigned int fields_of(const struct sl_match *match)
{
	return match->fields | (match->ports ? HAS_PORT : 0) | (match->vlan ? HAS_VLAN : 0);
}

/* Refuses an unknown word. kinds_too: the word could be a kind of packet. */
static int refuse_word(const char *text, const char *word, bool kinds_too)
{
	const char *names[MATCH_WORDS + KINDS], *nearly;

	for (size_t i = 0; i < MATCH_WORDS; i++)
		names[i] = match_words[i].name;
	for (size_t i = 0; i < KINDS; i++)
		names[MATCH_WORDS + i] = kinds[i].name;
	nearly = nearly_find(word, names, MATCH_WORDS + (kinds_too ? KINDS : 0));
	if (nearly)
		return refuse(text, "unknown word '%s'; did you mean '%s'?", word, nearly);
	return refuse(text,
		      "unknown word '%s'; write any, tcp, udp, icmp, tcp-syn, fragment, "
		      "quic-initial, tls-hello, dns-query or proto N, then sport, port, to, flags, "
		      "icmp-type, length, dscp or vlan",
		      word);
}

/* Parses the kind of packet. Returns the number of words that it has, or a negative errno. */
static int kind_parse(char *const words[], struct parsing *parsing)
{
	const struct match_kind *kind = kind_find(words[0]);
	unsigned int number;

	if (!kind)
		return word_of(words[0]) ? 0 : refuse_word(parsing->text, words[0], true);
	parsing->name = kind->name;
	parsing->match.fact = kind->fact;
	if (kind->fact == SL_FACT_TCP && is_word(words[1], "syn")) {
		parsing->match.fact = SL_FACT_SYN;
		return 2;
	}
	if (kind->fact != SL_FACT_PROTO)
		return 1;
	if (!number_parse_word(words[1], 0, UINT8_MAX, &number))
		return words[1] && kind_find(words[1])
			       ? refuse(parsing->text,
					"proto accepts a number, 0 to 255; write '%s' alone",
					words[1])
			       : refuse(parsing->text, "proto accepts a number, 0 to 255; write "
						       "proto 47 for GRE");
	parsing->match.proto = number;
	return 2;
}

/* Parses one word and its value. */
static int word_parse(const char *name, const char *value, struct parsing *parsing)
{
	const struct match_word *word = word_of(name);

	if (!word)
		return kind_find(name) ? refuse(parsing->text,
						"'%s' is unexpected; write one kind of packet, and "
						"write it first",
						name)
				       : refuse_word(parsing->text, name, false);
	if (fields_of(&parsing->match) & word->field)
		return refuse(parsing->text, "'%s' is given twice", name);
	if (!value)
		return refuse(parsing->text, "nothing after %s; %s", name, word->hint);
	parsing->match.fields |= word->field & SL_FIELDS;
	return word->parse(value, parsing);
}

/* Checks that the kind of packet has each of the fields. */
static int fields_check(const struct parsing *parsing)
{
	const struct match_kind *kind = kind_of(parsing->match.fact);
	unsigned int lacking = fields_of(&parsing->match) & ~(kind->fields | IP_FIELDS);

	for (size_t i = 0; i < MATCH_WORDS; i++)
		if (lacking & match_words[i].field)
			return refuse(parsing->text, "%s has no %s; write %s",
				      parsing->name ?: kind->name, match_words[i].name,
				      match_words[i].full);
	return 0;
}

/* Without a kind, the words apply to any packet that has their fields. */
int match_parse(const char *text, struct sl_match *ret)
{
	char copy[MATCH_TEXT], *words[WORDS_MAX] = {0}, *rest;
	struct parsing parsing = {.text = text};
	int at, err = 0;

	if (strlen(text) >= sizeof(copy))
		return refuse(text, "too long");
	strcpy(copy, text);
	words[0] = strtok_r(copy, " \t", &rest);
	for (int i = 1; words[i - 1] && i < WORDS_MAX - 1; i++)
		words[i] = strtok_r(NULL, " \t", &rest);
	if (!words[0])
		return refuse(text, "no kind of packet; write any, tcp, udp port 53, ...");
	at = kind_parse(words, &parsing);
	if (at < 0)
		return at;
	for (; !err && words[at]; at += 2)
		err = word_parse(words[at], words[at + 1], &parsing);
	if (!err && !parsing.match.fact)
		parsing.match.fact = kind_implied(parsing.match.fields);
	err = err ?: fields_check(&parsing);
	if (!err)
		*ret = parsing.match;
	return err;
}

/* --- Matches -------------------------------------------------------------------------------- */

static bool range_is_sound(const struct sl_range *range)
{
	return range->first <= range->last;
}

static bool to_is_sound(const struct sl_match *match)
{
	struct sl_prefix prefix = match_to_prefix(match);
	__be32 mask[4];

	to_mask_make(match->to_bits, mask);
	return match->to_bits <= 128 && prefix_is_sound(&prefix) &&
	       !memcmp(mask, match->to_mask, sizeof(mask));
}

bool match_is_sound(const struct sl_match *match)
{
	const struct match_kind *kind = kind_of(match->fact);
	unsigned int fields = fields_of(match);

	if (!kind || match->fields & ~SL_FIELDS || fields & ~(kind->fields | IP_FIELDS) ||
	    match->ports > SL_PORTS_MAX || match->sports > SL_PORTS_MAX || match->vlan > VLAN_MAX)
		return false;
	return !(fields & SL_FIELD_SPORT) == !match->sports &&
	       !(fields & SL_FIELD_FLAGS) == !match->tcp_mask &&
	       !(match->tcp_flags & ~match->tcp_mask) && match->dscp <= DSCP_MAX &&
	       range_is_sound(&match->length) && (!(fields & SL_FIELD_TO) || to_is_sound(match)) &&
	       (!(fields & SL_FIELD_ICMP) || icmp_type_name(match->icmp_type));
}

static const char *ports_format(const struct sl_range *ports, uint8_t count, char text[PORTS_TEXT])
{
	char range[UNITS_TEXT];
	size_t length = 0;

	for (int i = 0; i < count && i < SL_PORTS_MAX; i++)
		length += snprintf(text + length, PORTS_TEXT - length, "%s%s", i ? "," : "",
				   range_format(&ports[i], range));
	return text;
}

/* Formats the value of one word of a match. field: the word's field */
static const char *field_format(const struct sl_match *match, unsigned int field,
				char text[PORTS_TEXT])
{
	struct sl_prefix to = match_to_prefix(match);

	switch (field) {
	case SL_FIELD_FLAGS:
		return flags_format(match->tcp_mask, match->tcp_flags, text);
	case SL_FIELD_ICMP:
		return icmp_type_format(match->icmp_type, text);
	case SL_FIELD_SPORT:
		return ports_format(match->sport, match->sports, text);
	case HAS_PORT:
		return ports_format(match->port, match->ports, text);
	case SL_FIELD_TO:
		return prefix_format(&to, text);
	case SL_FIELD_LENGTH:
		return range_format(&match->length, text);
	}
	snprintf(text, PORTS_TEXT, "%u", field == HAS_VLAN ? match->vlan : match->dscp);
	return text;
}

const char *match_format(const struct sl_match *match, char text[MATCH_TEXT])
{
	const struct match_kind *kind = kind_of(match->fact);
	unsigned int fields = fields_of(match);
	char value[PORTS_TEXT];
	size_t length = 0;

#define append(...)                                                                                \
	length += snprintf(text + length, length < MATCH_TEXT ? MATCH_TEXT - length : 0,           \
			   __VA_ARGS__)
	*text = '\0';
	if (!fields || match->fact != kind_implied(fields))
		append("%s", kind ? kind->name : "?"); /* "?" means a fact of a later version */
	if (match->fact == SL_FACT_PROTO)
		append(" %u", match->proto);
	for (size_t i = 0; i < MATCH_WORDS; i++)
		if (fields & match_words[i].field)
			append("%s%s %s", length ? " " : "", match_words[i].name,
			       field_format(match, match_words[i].field, value));
#undef append
	return text;
}

/* Ports after the last range are not compared. */
bool match_equal(const struct sl_match *a, const struct sl_match *b)
{
	return !memcmp(a, b, offsetof(struct sl_match, port)) &&
	       !memcmp(a->port, b->port, a->ports * sizeof(*a->port)) &&
	       !memcmp(a->sport, b->sport, a->sports * sizeof(*a->sport));
}
