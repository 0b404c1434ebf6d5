// SPDX-License-Identifier: GPL-2.0
#include "rules/matches.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "rules/value.h"

#define PORTS_HINT "write 53, or 80,443, or 1024-65535"
#define VLAN_MAX   4094
#define WORDS_MAX  12 /* more than the words of a valid match plus NULL */

/* The kinds of packets. If several names mean the same fact, the first name is printed. */
static const struct match_kind {
	const char *name;
	enum sl_fact fact;
	bool has_ports;
} kinds[] = {
	{"any", SL_FACT_ANY, false},	 {"tcp", SL_FACT_TCP, true},
	{"udp", SL_FACT_UDP, true},	 {"icmp", SL_FACT_ICMP, false},
	{"tcp-syn", SL_FACT_SYN, true},	 {"fragment", SL_FACT_FRAGMENT, false},
	{"proto", SL_FACT_PROTO, false}, {"all", SL_FACT_ANY, false},
};

#define KINDS ARRAY_SIZE(kinds)

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

static const struct match_kind *kind_of(uint8_t fact)
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

static const char *ports_format(const struct sl_ports *ports, char text[UNITS_TEXT])
{
	snprintf(text, UNITS_TEXT, ports->first == ports->last ? "%u" : "%u-%u", ports->first,
		 ports->last);
	return text;
}

/* Parses a list of ports, such as "80,8000-8080". text: the whole match, for errors. */
static int ports_parse(const char *text, const char *list, struct sl_match *match)
{
	char range[UNITS_TEXT], other[UNITS_TEXT];
	const char *p = list;

	if (!list)
		return refuse(text, "no port; " PORTS_HINT);
	do {
		unsigned int first = 0, last;
		struct sl_ports ports;

		p = number_read(p, UINT16_MAX, &first);
		last = first;
		if (p && *p == '-')
			p = number_read(p + 1, UINT16_MAX, &last);
		if (!p || (*p && *p != ','))
			return refuse(text, "'%s' is not a list of ports; " PORTS_HINT, list);
		ports = (struct sl_ports){.first = first, .last = last};
		ports_format(&ports, range);
		if (first > last)
			return refuse(text, "the first port of %s is higher than the last", range);
		for (int i = 0; i < match->ports; i++)
			if (first <= match->port[i].last && match->port[i].first <= last)
				return refuse(text, "ports %s and %s overlap; write each port once",
					      ports_format(&match->port[i], other), range);
		if (match->ports == SL_PORTS_MAX)
			return refuse(text, "more than %d ports and ranges", SL_PORTS_MAX);
		match->port[match->ports++] = ports;
	} while (*p++);
	return 0;
}

/* Parses a number. Returns false if the word is not a number in `least`..`most`. */
static bool number_parse_word(const char *word, unsigned int least, unsigned int most,
			      unsigned int *ret)
{
	const char *end = word ? number_read(word, most, ret) : NULL;

	return end && !*end && *ret >= least;
}

static int refuse_kind(const char *text, const char *word)
{
	const char *names[KINDS], *nearly;

	if (is_word(word, "port") || is_word(word, "dport"))
		return refuse(text, "no protocol; write 'tcp port ...' or 'udp port ...'");
	for (size_t i = 0; i < KINDS; i++)
		names[i] = kinds[i].name;
	nearly = nearly_find(word, names, KINDS);
	if (nearly)
		return refuse(text, "unknown kind of packet '%s'; did you mean '%s'?", word,
			      nearly);
	return refuse(
		text,
		"unknown kind of packet '%s'; write any, tcp, udp, icmp, tcp-syn, fragment, proto "
		"N or vlan N",
		word);
}

static int refuse_rest(const char *text, const char *word)
{
	static const char *const keywords[] = {"port", "vlan"};
	const char *nearly = nearly_find(word, keywords, ARRAY_SIZE(keywords));

	if (is_word(word, "sport"))
		return refuse(text, "a limit matches destination ports only; see 'match' in "
				    "sluice-limits(7)");
	if (nearly)
		return refuse(text, "'%s' is unexpected; did you mean '%s'?", word, nearly);
	return refuse(text, "'%s' is unexpected; write the kind first, then port, then vlan", word);
}

/* `vlan ID` alone matches any packet of this VLAN. `tcp syn` is the same as tcp-syn. */
int match_parse(const char *text, struct sl_match *ret)
{
	char copy[MATCH_TEXT], *words[WORDS_MAX] = {0}, **word = words, *rest;
	const struct match_kind *kind;
	struct sl_match match = {0};
	unsigned int number;
	int err;

	if (strlen(text) >= sizeof(copy))
		return refuse(text, "too long");
	strcpy(copy, text);
	words[0] = strtok_r(copy, " \t", &rest);
	for (int i = 1; words[i - 1] && i < WORDS_MAX - 1; i++)
		words[i] = strtok_r(NULL, " \t", &rest);
	if (!*word)
		return refuse(text, "no kind of packet; write any, tcp, udp port 53, ...");
	kind = kind_find(is_word(*word, "vlan") ? "any" : *word);
	if (!kind)
		return refuse_kind(text, *word);
	match.fact = kind->fact;
	word += !is_word(*word, "vlan");
	if (kind->fact == SL_FACT_PROTO) {
		if (!number_parse_word(*word, 0, UINT8_MAX, &number))
			return *word && kind_find(*word)
				       ? refuse(text,
						"proto accepts a number, 0 to 255; write "
						"'%s' alone",
						*word)
				       : refuse(text, "proto accepts a number, 0 to 255; write "
						      "proto 47 for GRE");
		match.proto = number;
		word++;
	} else if (kind->fact == SL_FACT_TCP && is_word(*word, "syn")) {
		match.fact = SL_FACT_SYN;
		word++;
	}
	if (is_word(*word, "port") || is_word(*word, "dport")) {
		if (!kind->has_ports)
			return refuse(text,
				      "%s has no ports; write 'tcp port ...' or 'udp port ...'",
				      kind->name);
		err = ports_parse(text, word[1], &match);
		if (err)
			return err;
		word += 2;
	}
	if (is_word(*word, "vlan")) {
		if (!number_parse_word(word[1], 1, VLAN_MAX, &number))
			return refuse(text, "not a VLAN; write vlan and a number, 1 to %d",
				      VLAN_MAX);
		match.vlan = number;
		word += 2;
	}
	if (*word)
		return refuse_rest(text, *word);
	*ret = match;
	return 0;
}

bool match_is_sound(const struct sl_match *match)
{
	const struct match_kind *kind = kind_of(match->fact);

	return kind && match->ports <= (kind->has_ports ? SL_PORTS_MAX : 0) &&
	       match->vlan <= VLAN_MAX;
}

const char *match_format(const struct sl_match *match, char text[MATCH_TEXT])
{
	const struct match_kind *kind = kind_of(match->fact);
	char ports[UNITS_TEXT];
	size_t length = 0;

#define append(...)                                                                                \
	length += snprintf(text + length, length < MATCH_TEXT ? MATCH_TEXT - length : 0,           \
			   __VA_ARGS__)
	*text = '\0';
	if (!match->vlan || match->fact != SL_FACT_ANY)
		append("%s", kind ? kind->name : "?"); /* "?" means a fact of a later version */
	if (match->fact == SL_FACT_PROTO)
		append(" %u", match->proto);
	for (int i = 0; i < match->ports && i < SL_PORTS_MAX; i++)
		append("%s%s", i ? "," : " port ", ports_format(&match->port[i], ports));
	if (match->vlan)
		append("%svlan %u", length ? " " : "", match->vlan);
#undef append
	return text;
}

bool match_equal(const struct sl_match *a, const struct sl_match *b)
{
	return a->fact == b->fact && a->proto == b->proto && a->vlan == b->vlan &&
	       a->ports == b->ports && !memcmp(a->port, b->port, a->ports * sizeof(*a->port));
}
