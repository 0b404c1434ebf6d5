// SPDX-License-Identifier: GPL-2.0
#include "rules/matches.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "rules/value.h"

#define PORTS_HINT "write 53, or 80,443, or 1024-65535"
#define VLAN_MAX   4094

/* The first of several kinds with one fact is printed. */
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

/* The words of one match: the text, for errors, and a cursor. */
struct match_words {
	const char *text;
	char *word; /* the next word; NULL: none is left */
	char *rest;
	char copy[MATCH_TEXT];
};

#define refuse(words, ...) error_misuse("bad-match", object_of("match", (words)->text), __VA_ARGS__)

static void next(struct match_words *words)
{
	words->word = strtok_r(NULL, " \t", &words->rest);
}

static bool is_at(const struct match_words *words, const char *keyword)
{
	return words->word && !strcmp(words->word, keyword);
}

static bool is_at_ports(const struct match_words *words)
{
	return is_at(words, "port") || is_at(words, "dport");
}

static const char *ports_format(const struct sl_ports *ports, char text[UNITS_TEXT])
{
	if (ports->first == ports->last)
		snprintf(text, UNITS_TEXT, "%u", ports->first);
	else
		snprintf(text, UNITS_TEXT, "%u-%u", ports->first, ports->last);
	return text;
}

static int ports_add(const struct match_words *words, const struct sl_ports *ports,
		     struct sl_match *match)
{
	char text[UNITS_TEXT], other[UNITS_TEXT];

	ports_format(ports, text);
	if (ports->first > ports->last)
		return refuse(words, "the range %s runs backwards", text);
	for (int i = 0; i < match->ports; i++)
		if (ports->first <= match->port[i].last && match->port[i].first <= ports->last)
			return refuse(words, "ports %s and %s overlap; write each port once",
				      ports_format(&match->port[i], other), text);
	if (match->ports == SL_PORTS_MAX)
		return refuse(words, "more than %d ports and ranges", SL_PORTS_MAX);
	match->port[match->ports++] = *ports;
	return 0;
}

/* Parses the list of ports after `port`: "53", "80,8000-8080". */
static int ports_parse(struct match_words *words, struct sl_match *match)
{
	const char *p;
	int err = 0;

	next(words);
	if (!words->word)
		return refuse(words, "no port; " PORTS_HINT);
	p = words->word;
	do {
		unsigned int first = 0, last;

		p = number_read(p, UINT16_MAX, &first);
		last = first;
		if (p && *p == '-')
			p = number_read(p + 1, UINT16_MAX, &last);
		if (!p || (*p && *p != ','))
			return refuse(words, "'%s' is not a list of ports; " PORTS_HINT,
				      words->word);
		err = ports_add(words, &(struct sl_ports){.first = first, .last = last}, match);
	} while (!err && *p++);
	next(words);
	return err;
}

/* Parses the number after a word. Returns false unless it is from `least` to `most`. */
static bool number_next(struct match_words *words, unsigned int least, unsigned int most,
			unsigned int *ret)
{
	const char *end;

	next(words);
	end = words->word ? number_read(words->word, most, ret) : NULL;
	if (!end || *end || *ret < least)
		return false;
	next(words);
	return true;
}

static int refuse_kind(const struct match_words *words)
{
	const char *names[KINDS], *nearly;

	if (is_at_ports(words))
		return refuse(words, "no protocol; write 'tcp port ...' or 'udp port ...'");
	for (size_t i = 0; i < KINDS; i++)
		names[i] = kinds[i].name;
	nearly = nearly_find(words->word, names, KINDS);
	if (nearly)
		return refuse(words, "no kind of packet '%s'; did you mean '%s'?", words->word,
			      nearly);
	return refuse(words,
		      "no kind of packet '%s'; write any, tcp, udp, icmp, tcp-syn, fragment, proto "
		      "N or vlan N",
		      words->word);
}

/* Parses the first word. `vlan` as first word matches any packet, and `tcp syn` is tcp-syn. */
static int kind_parse(struct match_words *words, struct sl_match *match,
		      const struct match_kind **ret)
{
	const struct match_kind *kind = kind_find(is_at(words, "vlan") ? "any" : words->word);
	unsigned int proto;

	if (!kind)
		return refuse_kind(words);
	match->fact = kind->fact;
	*ret = kind;
	if (kind->fact == SL_FACT_PROTO) {
		if (number_next(words, 0, UINT8_MAX, &proto)) {
			match->proto = proto;
			return 0;
		}
		if (words->word && kind_find(words->word))
			return refuse(words, "proto accepts a number, 0 to 255; write '%s' alone",
				      words->word);
		return refuse(words, "proto accepts a number, 0 to 255; write proto 47 for GRE");
	}
	if (!is_at(words, "vlan"))
		next(words);
	if (kind->fact == SL_FACT_TCP && is_at(words, "syn")) {
		match->fact = SL_FACT_SYN;
		next(words);
	}
	return 0;
}

static int refuse_rest(const struct match_words *words)
{
	static const char *const keywords[] = {"port", "vlan"};
	const char *nearly = nearly_find(words->word, keywords, ARRAY_SIZE(keywords));

	if (is_at(words, "sport"))
		return refuse(words, "no limit is by the port of the source; write port, which is "
				     "the port of the destination");
	if (nearly)
		return refuse(words, "'%s' is unexpected; did you mean '%s'?", words->word, nearly);
	return refuse(words, "'%s' is unexpected; write the kind first, then port, then vlan",
		      words->word);
}

int match_parse(const char *text, struct sl_match *ret)
{
	struct match_words words = {.text = text};
	const struct match_kind *kind = NULL;
	struct sl_match match = {0};
	unsigned int vlan;
	int err;

	if (strlen(text) >= sizeof(words.copy))
		return refuse(&words, "too long");
	strcpy(words.copy, text);
	words.word = strtok_r(words.copy, " \t", &words.rest);
	if (!words.word)
		return refuse(&words, "no kind of packet; write any, tcp, udp port 53, ...");
	err = kind_parse(&words, &match, &kind);
	if (err)
		return err;
	if (is_at_ports(&words)) {
		if (!kind->has_ports)
			return refuse(&words,
				      "%s has no ports; write 'tcp port ...' or 'udp port "
				      "...'",
				      kind->name);
		err = ports_parse(&words, &match);
		if (err)
			return err;
	}
	if (is_at(&words, "vlan")) {
		if (!number_next(&words, 1, VLAN_MAX, &vlan))
			return refuse(&words, "not a VLAN; write vlan and a number, 1 to %d",
				      VLAN_MAX);
		match.vlan = vlan;
	}
	if (words.word)
		return refuse_rest(&words);
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
		append("%s", kind ? kind->name : "?"); /* ?: a fact of another version */
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
