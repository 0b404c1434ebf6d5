// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "share/slots.h"

unsigned int slot_of_key(const char *key)
{
	const char *open = strchr(key, '{');
	const char *close = open ? strchr(open, '}') : NULL;
	size_t size = strlen(key);
	uint16_t crc = 0;

	if (close && close > open + 1) {
		key = open + 1;
		size = close - key;
	}
	/* CRC-16/XMODEM: polynomial 0x1021, initial value 0, no reflection */
	for (size_t i = 0; i < size; i++) {
		crc ^= (uint16_t)((uint8_t)key[i] << 8);
		for (int bit = 0; bit < 8; bit++)
			crc = (uint16_t)(crc << 1 ^ (crc & 0x8000 ? 0x1021 : 0));
	}
	return crc % SLOTS;
}

bool endpoint_set(const char *host, size_t size, long long port, struct endpoint *ret)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789.-_:";

	if (size == 1 && *host == '?')
		size = 0;
	if (port < 1 || port > UINT16_MAX || size >= HOST_TEXT)
		return false;
	for (size_t i = 0; i < size; i++)
		if (!host[i] || !strchr(allowed, host[i]))
			return false;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->host, host, size);
	ret->port = port;
	return true;
}

/* Parses a decimal number. Returns -1 if it has a leading zero or more than six digits. */
static long long small_number(const char *text, size_t size)
{
	long long number = 0;

	if (!size || size > 6 || (size > 1 && *text == '0'))
		return -1;
	for (size_t i = 0; i < size; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		number = 10 * number + text[i] - '0';
	}
	return number;
}

bool endpoint_parse(const char *text, size_t size, struct endpoint *ret)
{
	const char *colon = memrchr(text, ':', size);
	size_t host = colon ? colon - text : 0;
	long long port = colon ? small_number(colon + 1, size - host - 1) : -1;

	if (host >= 2 && text[0] == '[' && text[host - 1] == ']')
		return host > 2 && endpoint_set(text + 1, host - 2, port, ret);
	return endpoint_set(text, host, port, ret);
}

bool host_is_address(const char *host)
{
	struct in6_addr address;

	return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

bool endpoint_equal(const struct endpoint *a, const struct endpoint *b)
{
	return a->port == b->port && !strcmp(a->host, b->host);
}

const char *endpoint_format(const struct endpoint *at, char text[ENDPOINT_TEXT])
{
	bool is_ipv6 = strchr(at->host, ':');

	snprintf(text, ENDPOINT_TEXT, is_ipv6 ? "[%s]:%u" : "%s:%u", at->host, at->port);
	return text;
}

void slot_map_clear(struct slot_map *map)
{
	map->nodes = 0;
	memset(map->of, NODE_NONE, sizeof(map->of));
}

unsigned int slot_map_node(struct slot_map *map, const struct endpoint *at)
{
	for (unsigned int i = 0; i < map->nodes; i++)
		if (endpoint_equal(&map->node[i], at))
			return i;
	if (map->nodes == NODES_MAX)
		return NODE_NONE;
	map->node[map->nodes] = *at;
	return map->nodes++;
}

bool slot_map_give(struct slot_map *map, long long first, long long last, unsigned int node)
{
	if (first < 0 || last < first || last >= SLOTS || node >= map->nodes)
		return false;
	memset(map->of + first, node, last - first + 1);
	return true;
}

static const struct {
	const char *word;
	enum refusal refusal;
} refusals[] = {
	{"MOVED", REFUSAL_MOVED},	{"ASK", REFUSAL_ASK},	       {"TRYAGAIN", REFUSAL_LATER},
	{"CLUSTERDOWN", REFUSAL_LATER}, {"MASTERDOWN", REFUSAL_LATER}, {"LOADING", REFUSAL_LATER},
	{"BUSY", REFUSAL_LATER},	{"READONLY", REFUSAL_ROLE},    {"NOAUTH", REFUSAL_RIGHT},
	{"WRONGPASS", REFUSAL_RIGHT},	{"NOPERM", REFUSAL_RIGHT},     {"WRONGTYPE", REFUSAL_KEY},
};

/* Returns the length of the first word of a text. */
static size_t word_size(const char *text, size_t size)
{
	const char *space = memchr(text, ' ', size);

	return space ? (size_t)(space - text) : size;
}

/* Parses "SLOT HOST:PORT" at the end of a redirect. Returns false if it is invalid. */
static bool redirect_parse(const char *text, size_t size, unsigned int *ret_slot,
			   struct endpoint *ret_to)
{
	size_t digits = word_size(text, size);
	long long slot = small_number(text, digits);

	if (slot < 0 || slot >= SLOTS || digits == size)
		return false;
	text += digits + 1;
	size -= digits + 1;
	if (!endpoint_parse(text, word_size(text, size), ret_to))
		return false;
	*ret_slot = slot;
	return true;
}

enum refusal refusal_parse(const char *text, size_t size, unsigned int *ret_slot,
			   struct endpoint *ret_to)
{
	size_t word = word_size(text, size);
	enum refusal refusal = REFUSAL_OTHER;

	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
		if (strlen(refusals[i].word) == word && !memcmp(text, refusals[i].word, word))
			refusal = refusals[i].refusal;
	if (refusal != REFUSAL_MOVED && refusal != REFUSAL_ASK)
		return refusal;
	if (word == size || !redirect_parse(text + word + 1, size - word - 1, ret_slot, ret_to))
		return REFUSAL_OTHER;
	return refusal;
}
