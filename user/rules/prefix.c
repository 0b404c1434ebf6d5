// SPDX-License-Identifier: GPL-2.0
#include "rules/prefix.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "identity.h"

static unsigned int family_bits(const struct sl_prefix *prefix)
{
	return prefix_is_ipv4(prefix) ? 32 : 128;
}

bool prefix_is_ipv4(const struct sl_prefix *prefix)
{
	return prefix->bits && prefix->family == htonl(SL_FAMILY_IPV4);
}

bool prefix_is_ipv6(const struct sl_prefix *prefix)
{
	return prefix->bits && prefix->family == htonl(SL_FAMILY_IPV6);
}

bool prefix_is_host(const struct sl_prefix *prefix)
{
	return prefix->bits == SL_FAMILY_BITS + family_bits(prefix);
}

/* Clears the bits beyond the prefix's length. */
static struct sl_prefix prefix_cut(const struct sl_prefix *prefix)
{
	struct sl_prefix cut = *prefix;

	for (unsigned int bit = prefix->bits - SL_FAMILY_BITS; bit < 128; bit++)
		cut.addr[bit / 8] &= ~(0x80 >> bit % 8);
	return cut;
}

/* Whether an IPv6 prefix begins with the 96 bits of IPv4-mapped addresses (RFC 4291, 2.5.5.2). */
static bool is_mapped(const struct sl_prefix *prefix)
{
	static const __u8 mapped[12] = {[10] = 0xff, [11] = 0xff};

	return prefix_is_ipv6(prefix) && !memcmp(prefix->addr, mapped, sizeof(mapped));
}

/*
 * Replaces an IPv4-mapped prefix of /96 or longer by the IPv4 prefix that it stands for: dual-stack
 * servers log IPv4 sources in this form. No rule can name the source of an IPv6 packet from a
 * mapped address. The kernel refuses TCP connections from such sources, but accepts their UDP
 * packets.
 */
static struct sl_prefix prefix_unmap(const struct sl_prefix *prefix)
{
	struct sl_prefix ipv4 = {
		.bits = prefix->bits - 96,
		.family = htonl(SL_FAMILY_IPV4),
	};

	if (prefix->bits < SL_FAMILY_BITS + 96 || !is_mapped(prefix))
		return *prefix;
	memcpy(ipv4.addr, prefix->addr + 12, 4);
	return ipv4;
}

/*
 * Whether a prefix of /81 to /95 contains all mapped addresses. It contains nothing else that is
 * in use, so it is refused: its IPv4 addresses would not be matched.
 */
static bool surrounds_mapped(const struct sl_prefix *prefix)
{
	const struct sl_prefix mapped = {
		.bits = SL_FAMILY_BITS + 96,
		.family = htonl(SL_FAMILY_IPV6),
		.addr = {[10] = 0xff, [11] = 0xff},
	};

	return prefix->bits > SL_FAMILY_BITS + 80 && prefix->bits < mapped.bits &&
	       prefix_covers(prefix, &mapped);
}

/* Parses an address, and leaves an IPv4-mapped one as it is. */
static int address_read(const char *text, struct sl_prefix *ret)
{
	struct sl_prefix prefix = {0};

	if (inet_pton(AF_INET, text, prefix.addr) == 1) {
		prefix.family = htonl(SL_FAMILY_IPV4);
		prefix.bits = SL_FAMILY_BITS + 32;
	} else if (inet_pton(AF_INET6, text, prefix.addr) == 1) {
		prefix.family = htonl(SL_FAMILY_IPV6);
		prefix.bits = SL_FAMILY_BITS + 128;
	} else {
		return misuse("'%s' is not an address: write 192.0.2.1 or 2001:db8::1", text);
	}
	*ret = prefix;
	return OK;
}

int address_parse(const char *text, struct sl_prefix *ret)
{
	struct sl_prefix prefix;
	int status = address_read(text, &prefix);

	if (!status)
		*ret = prefix_unmap(&prefix);
	return status;
}

/* Parses a length of 0 to `most`, without leading zeros. Returns -1 for other texts. */
static int length_parse(const char *text, int most)
{
	int length = 0;

	if (!*text || strlen(text) > 3 || (*text == '0' && text[1]))
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		length = length * 10 + *text - '0';
	}
	return length <= most ? length : -1;
}

/* Returns the length of a netmask such as 255.255.255.0, or -1 if it is not a netmask. */
static int netmask_parse(const char *text)
{
	uint32_t mask;

	if (inet_pton(AF_INET, text, &mask) != 1)
		return -1;
	mask = ntohl(mask);
	return ~mask & (~mask + 1) ? -1 : __builtin_popcount(mask);
}

static int refuse_length(const char *text, const char *length, const struct sl_prefix *address)
{
	int netmask = prefix_is_ipv4(address) ? netmask_parse(length) : -1;
	struct sl_prefix right = *address;
	char prefix[PREFIX_TEXT];

	right.bits = SL_FAMILY_BITS + netmask;
	right = netmask < 0 ? *address : prefix_cut(&right);
	if (netmask >= 0)
		return misuse("'%s' has a netmask, and a prefix has a length: write %s", text,
			      prefix_format(&right, prefix));
	return misuse("'%s': the length of a prefix is 0 to %u%s", text, family_bits(address),
		      *length == '0' ? ", without leading zeros" : "");
}

int prefix_parse(const char *text, struct sl_prefix *ret)
{
	static const char *const words[] = {"default"};
	char address[INET6_ADDRSTRLEN] = "", right[PREFIX_TEXT];
	const char *slash = strchr(text, '/');
	struct sl_prefix prefix, cut;
	int status;
	bool mapped;
	int length;

	if (!strcmp(text, "default") || !strcmp(text, "any")) {
		*ret = (struct sl_prefix){0};
		return OK;
	}
	/*
	 * Files have millions of addresses, which are not compared with words. `all` is refused: it
	 * could mean all sources, all rules, or the limit of that name.
	 */
	if (!text[strcspn(text, ".:/")] &&
	    (!strcmp(text, "all") || nearly_find(text, words, ARRAY_SIZE(words))))
		return misuse("'%s' is not an address: did you mean 'default', which covers all "
			      "sources?",
			      text);
	if (!slash)
		return address_parse(text, ret);
	if ((size_t)(slash - text) >= sizeof(address))
		return misuse("'%s' is not a prefix: write 192.0.2.0/24 or 2001:db8::/32", text);
	memcpy(address, text, slash - text);
	status = address_read(address, &prefix);
	if (status)
		return status;
	length = length_parse(slash + 1, family_bits(&prefix));
	if (length < 0)
		return refuse_length(text, slash + 1, &prefix);
	mapped = length < 96 && is_mapped(&prefix);
	prefix.bits = SL_FAMILY_BITS + length;
	if (mapped || surrounds_mapped(&prefix))
		return misuse("'%s': an IPv4-mapped prefix has a length of 96 to 128: write "
			      "::ffff:192.0.2.0/120, or 192.0.2.0/24",
			      text);
	cut = prefix_cut(&prefix);
	if (!prefix_equal(&prefix, &cut))
		return misuse("'%s' has bits beyond its length: did you mean %s?", text,
			      prefix_format(&cut, right));
	*ret = prefix_unmap(&prefix);
	return OK;
}

const char *prefix_format(const struct sl_prefix *prefix, char text[PREFIX_TEXT])
{
	unsigned int length = prefix->bits - SL_FAMILY_BITS;
	char address[INET6_ADDRSTRLEN];

	if (!prefix->bits)
		return "default";
	inet_ntop(prefix_is_ipv4(prefix) ? AF_INET : AF_INET6, prefix->addr, address,
		  sizeof(address));
	if (length == family_bits(prefix))
		snprintf(text, PREFIX_TEXT, "%s", address);
	else
		snprintf(text, PREFIX_TEXT, "%s/%u", address, length);
	return text;
}

bool prefix_equal(const struct sl_prefix *a, const struct sl_prefix *b)
{
	return !memcmp(a, b, sizeof(*a));
}

bool prefix_is_sound(const struct sl_prefix *prefix)
{
	struct sl_prefix cut = {0};

	if (prefix->bits) {
		if (!prefix_is_ipv4(prefix) && !prefix_is_ipv6(prefix))
			return false;
		if (prefix->bits < SL_FAMILY_BITS ||
		    prefix->bits > SL_FAMILY_BITS + family_bits(prefix))
			return false;
		cut = prefix_cut(prefix);
		if (surrounds_mapped(prefix))
			return false;
		cut = prefix_unmap(&cut);
	}
	return prefix_equal(prefix, &cut);
}

bool prefix_covers(const struct sl_prefix *prefix, const struct sl_prefix *address)
{
	struct sl_prefix cut = *address;

	if (!prefix->bits)
		return true;
	if (prefix->bits > address->bits)
		return false;
	cut.bits = prefix->bits;
	cut = prefix_cut(&cut);
	return prefix_equal(prefix, &cut);
}

int prefix_compare(const struct sl_prefix *a, const struct sl_prefix *b)
{
	int order = memcmp(&a->family, &b->family, sizeof(a->family));

	if (!order)
		order = memcmp(a->addr, b->addr, sizeof(a->addr));
	return order ? order : (a->bits > b->bits) - (a->bits < b->bits);
}

struct sl_prefix prefix_shorten(const struct sl_prefix *prefix, unsigned int bits)
{
	struct sl_prefix cut = *prefix;

	if (!bits)
		return (struct sl_prefix){0};
	cut.bits = bits;
	return prefix_cut(&cut);
}

struct sl_prefix prefix_source(const struct sl_prefix *address)
{
	struct sl_prefix source = *address;
	__u64 addr[2];

	memcpy(addr, address->addr, sizeof(addr));
	if (prefix_is_ipv6(address) && source.bits > SL_FAMILY_BITS + 64 &&
	    !identity_is_whole(addr)) {
		source.bits = SL_FAMILY_BITS + 64;
		source = prefix_cut(&source);
	}
	return source;
}

struct sl_prefix prefix_of_source(const __u64 key[2], bool ipv4)
{
	struct sl_prefix address = {
		.bits = SL_FAMILY_BITS + (ipv4 ? 32 : 128),
		.family = htonl(ipv4 ? SL_FAMILY_IPV4 : SL_FAMILY_IPV6),
	};

	memcpy(address.addr, key, ipv4 ? 4 : 16);
	return prefix_source(&address);
}

/* The last address of a prefix. */
static struct sl_prefix prefix_last(const struct sl_prefix *prefix)
{
	struct sl_prefix last = *prefix;

	for (unsigned int bit = prefix->bits - SL_FAMILY_BITS; bit < family_bits(prefix); bit++)
		last.addr[bit / 8] |= 0x80 >> bit % 8;
	last.bits = SL_FAMILY_BITS + family_bits(prefix);
	return last;
}

/* The next address; `bits` 0: there is none. */
static struct sl_prefix address_next(const struct sl_prefix *address)
{
	struct sl_prefix next = *address;

	for (int i = family_bits(address) / 8 - 1; i >= 0; i--)
		if (++next.addr[i])
			return next;
	return (struct sl_prefix){0};
}

bool prefix_of_range(struct sl_prefix *from, const struct sl_prefix *to, struct sl_prefix *ret)
{
	struct sl_prefix part = *from, last;

	if (!from->bits || memcmp(from->addr, to->addr, sizeof(to->addr)) > 0)
		return false;
	while (part.bits > SL_FAMILY_BITS) {
		struct sl_prefix wider = prefix_shorten(&part, part.bits - 1);

		last = prefix_last(&wider);
		if (surrounds_mapped(&wider) ||
		    memcmp(wider.addr, from->addr, sizeof(wider.addr)) ||
		    memcmp(last.addr, to->addr, sizeof(last.addr)) > 0)
			break;
		part = wider;
	}
	last = prefix_last(&part);
	*from = address_next(&last);
	*ret = prefix_unmap(&part);
	return true;
}

/* --- Types of values ------------------------------------------------------------------------ */

static int prefix_value_parse(const struct value_type *type, const char *what, const char *text,
			      void *ret)
{
	(void)what;
	return type == &value_prefix ? prefix_parse(text, ret) : address_parse(text, ret);
}

const struct value_type value_prefix = {.name = "default|PREFIX", .parse = prefix_value_parse};
const struct value_type value_address = {.name = "ADDRESS", .parse = prefix_value_parse};
