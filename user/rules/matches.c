// SPDX-License-Identifier: GPL-2.0
#include "rules/matches.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "rules/value.h"

#define PORTS_HINT "write 53, or 80,443, or 1024-65535"
#define VLAN_MAX   4094

static const struct kind {
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

/* The words of one match: the whole text for messages, and a cursor. */
struct words {
	const char *text;
	char *word; /* the next word; NULL: none is left */
	char *rest;
	char copy[MATCH_TEXT];
};

static void words_next(struct words *words)
{
	words->word = strtok_r(NULL, " \t", &words->rest);
}

static bool words_are_at(const struct words *words, const char *keyword)
{
	return words->word && !strcmp(words->word, keyword);
}

static const struct kind *kind_find(const char *name)
{
	for (size_t i = 0; i < KINDS; i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

/* --- Ports ---------------------------------------------------------------------------------- */

/* Parses "53" or "1024-65535". Returns what follows; NULL: it is neither. */
static const char *ports_read(const char *text, struct sl_ports *ret)
{
	unsigned int first, last;

	text = number_read(text, UINT16_MAX, &first);
	last = first;
	if (text && *text == '-')
		text = number_read(text + 1, UINT16_MAX, &last);
	if (!text || (*text && *text != ','))
		return NULL;
	*ret = (struct sl_ports){.first = first, .last = last};
	return text;
}

static const char *ports_format(const struct sl_ports *ports, char text[UNITS_TEXT])
{
	if (ports->first == ports->last)
		snprintf(text, UNITS_TEXT, "%u", ports->first);
	else
		snprintf(text, UNITS_TEXT, "%u-%u", ports->first, ports->last);
	return text;
}

static int ports_add(const struct words *words, const struct sl_ports *ports,
		     struct sl_match *match)
{
	char text[UNITS_TEXT], other[UNITS_TEXT];

	if (ports->first > ports->last)
		return misuse("match '%s': the range %s runs backwards", words->text,
			      ports_format(ports, text));
	for (int i = 0; i < match->ports; i++)
		if (ports->first <= match->port[i].last && match->port[i].first <= ports->last)
			return misuse("match '%s': ports %s and %s overlap: write each port once",
				      words->text, ports_format(&match->port[i], other),
				      ports_format(ports, text));
	if (match->ports == SL_PORTS_MAX)
		return misuse("match '%s' lists more than %d ports and ranges", words->text,
			      SL_PORTS_MAX);
	match->port[match->ports++] = *ports;
	return OK;
}

static int ports_parse(struct words *words, struct sl_match *match)
{
	int status = OK;
	struct sl_ports ports;
	const char *p;

	words_next(words);
	if (!words->word)
		return misuse("match '%s': which port? " PORTS_HINT, words->text);
	for (p = words->word; !status; p++) {
		p = ports_read(p, &ports);
		if (!p)
			return misuse("match '%s': '%s' is not a list of ports: " PORTS_HINT,
				      words->text, words->word);
		status = ports_add(words, &ports, match);
		if (!*p)
			break;
	}
	words_next(words);
	return status;
}

static int refuse_ports(const struct words *words, const struct kind *kind)
{
	if (kind->fact == SL_FACT_PROTO)
		return misuse("match '%s': proto has no ports: write 'tcp port ...' or "
			      "'udp port ...'",
			      words->text);
	return misuse("match '%s': %s has no ports: tcp, udp and tcp-syn have", words->text,
		      kind->name);
}

/* --- Kinds, protocols and VLANs ------------------------------------------------------------- */

static int vlan_parse(struct words *words, struct sl_match *match)
{
	const char *end = NULL;
	unsigned int vlan;

	words_next(words);
	if (words->word)
		end = number_read(words->word, VLAN_MAX, &vlan);
	if (!end || *end || !vlan)
		return misuse("match '%s': a VLAN has a number, 1 to %d", words->text, VLAN_MAX);
	match->vlan = vlan;
	words_next(words);
	return OK;
}

static int proto_parse(struct words *words, struct sl_match *match)
{
	const char *end = NULL;
	unsigned int proto;

	words_next(words);
	if (words->word && kind_find(words->word))
		return misuse("match '%s': proto takes a number, 0 to 255: write '%s' alone",
			      words->text, words->word);
	if (words->word)
		end = number_read(words->word, UINT8_MAX, &proto);
	if (!end || *end)
		return misuse("match '%s': proto takes a number, 0 to 255, as 47 for GRE",
			      words->text);
	match->proto = proto;
	words_next(words);
	return OK;
}

static bool ports_are_at(const struct words *words)
{
	return words_are_at(words, "port") || words_are_at(words, "dport");
}

static int refuse_kind(const struct words *words)
{
	const char *names[KINDS], *nearly;

	if (ports_are_at(words))
		return misuse("match '%s': port of what? Write 'tcp port ...' or 'udp port ...'",
			      words->text);
	for (size_t i = 0; i < KINDS; i++)
		names[i] = kinds[i].name;
	nearly = nearly_find(words->word, names, KINDS);
	if (nearly)
		return misuse("match '%s': there is no '%s': did you mean '%s'?", words->text,
			      words->word, nearly);
	return misuse("match '%s': there is no '%s': write any, tcp, udp, icmp, tcp-syn, "
		      "fragment, proto N or vlan N",
		      words->text, words->word);
}

/* Parses the first word. `vlan` as first word matches any packet, and `tcp syn` is tcp-syn. */
static int kind_parse(struct words *words, struct sl_match *match, const struct kind **ret)
{
	const struct kind *kind = kind_find(words_are_at(words, "vlan") ? "any" : words->word);

	if (!kind)
		return refuse_kind(words);
	match->fact = kind->fact;
	*ret = kind;
	if (kind->fact == SL_FACT_PROTO)
		return proto_parse(words, match);
	if (!words_are_at(words, "vlan"))
		words_next(words);
	if (kind->fact == SL_FACT_TCP && words_are_at(words, "syn")) {
		match->fact = SL_FACT_SYN;
		words_next(words);
	}
	return OK;
}

static int refuse_rest(const struct words *words)
{
	static const char *const keywords[] = {"port", "vlan"};
	const char *nearly = nearly_find(words->word, keywords, 2);

	if (words_are_at(words, "sport"))
		return misuse("match '%s': ports are the destination's: no limit is by the port "
			      "of the source",
			      words->text);
	if (nearly)
		return misuse("match '%s': '%s' is unexpected: did you mean '%s'?", words->text,
			      words->word, nearly);
	return misuse("match '%s': '%s' is unexpected: first what, then port, then vlan",
		      words->text, words->word);
}

int match_parse(const char *text, struct sl_match *ret)
{
	struct sl_match match = {0};
	struct words words = {.text = text};
	const struct kind *kind = NULL;
	int status;

	if (strlen(text) >= sizeof(words.copy))
		return misuse("match '%s' is too long", text);
	strcpy(words.copy, text);
	words.word = strtok_r(words.copy, " \t", &words.rest);
	if (!words.word)
		return misuse("match '%s' names no packets: write any, tcp, udp port 53, ...",
			      text);
	/* each parser begins at its keyword, and ends behind its value */
	status = kind_parse(&words, &match, &kind);
	if (!status && ports_are_at(&words))
		status = kind->has_ports ? ports_parse(&words, &match) : refuse_ports(&words, kind);
	if (!status && words_are_at(&words, "vlan"))
		status = vlan_parse(&words, &match);
	if (!status && words.word)
		status = refuse_rest(&words);
	if (!status)
		*ret = match;
	return status;
}

bool match_is_sound(const struct sl_match *match)
{
	const struct kind *kind = NULL;

	for (size_t i = 0; i < KINDS; i++)
		if (kinds[i].fact == match->fact)
			kind = &kinds[i];
	return kind && match->ports <= (kind->has_ports ? SL_PORTS_MAX : 0) &&
	       match->vlan <= VLAN_MAX;
}

/* --- Formatting ----------------------------------------------------------------------------- */

static void append(char text[MATCH_TEXT], const char *before, const char *word)
{
	size_t length = strlen(text);

	snprintf(text + length, MATCH_TEXT - length, "%s%s", before, word);
}

static void append_number(char text[MATCH_TEXT], const char *before, unsigned int number)
{
	char word[UNITS_TEXT];

	snprintf(word, sizeof(word), "%u", number);
	append(text, before, word);
}

const char *match_format(const struct sl_match *match, char text[MATCH_TEXT])
{
	const char *name = "?"; /* a fact of another version */
	char ports[UNITS_TEXT];

	for (size_t i = KINDS; i-- > 0;)
		if (kinds[i].fact == match->fact)
			name = kinds[i].name; /* the first of equal ones */
	*text = '\0';
	if (!match->vlan || match->fact != SL_FACT_ANY)
		append(text, "", name);
	if (match->fact == SL_FACT_PROTO)
		append_number(text, " ", match->proto);
	for (int i = 0; i < match->ports && i < SL_PORTS_MAX; i++)
		append(text, i ? "," : " port ", ports_format(&match->port[i], ports));
	if (match->vlan)
		append_number(text, *text ? " vlan " : "vlan ", match->vlan);
	return text;
}

bool match_equal(const struct sl_match *a, const struct sl_match *b)
{
	return a->fact == b->fact && a->proto == b->proto && a->vlan == b->vlan &&
	       a->ports == b->ports && !memcmp(a->port, b->port, a->ports * sizeof(*a->port));
}
