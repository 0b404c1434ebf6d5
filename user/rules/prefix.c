// SPDX-License-Identifier: GPL-2.0
#include "rules/prefix.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "identity.h"

static unsigned int family_bits(const struct sl_prefix *prefix)
{
	return prefix_is_ipv4(prefix) ? 32 : 128;
}

struct sl_prefix prefix_shorten(const struct sl_prefix *prefix, unsigned int bits)
{
	struct sl_prefix cut = *prefix;

	if (!bits)
		return (struct sl_prefix){0};
	cut.bits = bits;
	for (unsigned int bit = bits - SL_FAMILY_BITS; bit < 128; bit++)
		cut.addr[bit / 8] &= ~(0x80 >> bit % 8);
	return cut;
}

/* Returns ::ffff:0:0/96, which contains all IPv4-mapped addresses (RFC 4291, 2.5.5.2). */
static struct sl_prefix mapped(void)
{
	return (struct sl_prefix){
		.bits = SL_FAMILY_BITS + 96,
		.family = htonl(SL_FAMILY_IPV6),
		.addr = {[10] = 0xff, [11] = 0xff},
	};
}

/*
 * Converts an IPv4-mapped prefix of /96 or longer to an IPv4 prefix. Dual-stack servers log IPv4
 * sources as mapped addresses. Returns other prefixes unchanged. Therefore no rule can cover IPv6
 * packets whose source is a mapped address. The kernel refuses TCP connections from such a source,
 * but accepts its UDP packets.
 */
static struct sl_prefix prefix_unmap(const struct sl_prefix *prefix)
{
	struct sl_prefix all = mapped(), ipv4 = {
						 .bits = prefix->bits - 96,
						 .family = htonl(SL_FAMILY_IPV4),
					 };

	if (!prefix_covers(&all, prefix))
		return *prefix;
	memcpy(ipv4.addr, prefix->addr + 12, 4);
	return ipv4;
}

/*
 * Returns whether a prefix of /81 to /95 contains all IPv4-mapped addresses. Parsers refuse such a
 * prefix, because IPv4 packets match only IPv4 prefixes.
 */
static bool surrounds_mapped(const struct sl_prefix *prefix)
{
	const struct sl_prefix all = mapped();

	return prefix->bits > SL_FAMILY_BITS + 80 && prefix->bits < all.bits &&
	       prefix_covers(prefix, &all);
}

/* Parses an address. Returns an IPv4-mapped address as an IPv6 address. */
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
		return error_misuse("bad-address", object_of(NULL, text),
				    "not an address; write 192.0.2.1 or 2001:db8::1");
	}
	*ret = prefix;
	return 0;
}

int address_parse(const char *text, struct sl_prefix *ret)
{
	int err = address_read(text, ret);

	if (!err)
		*ret = prefix_unmap(ret);
	return err;
}

static int refuse_length(const char *text, const char *length, const struct sl_prefix *address)
{
	struct sl_prefix right = *address;
	char prefix[PREFIX_TEXT];
	uint32_t mask;

	if (prefix_is_ipv4(address) && inet_pton(AF_INET, length, &mask) == 1 &&
	    !(~ntohl(mask) & (~ntohl(mask) + 1))) {
		right = prefix_shorten(&right, SL_FAMILY_BITS + __builtin_popcount(mask));
		return error_misuse("bad-length", object_of(NULL, text),
				    "a netmask is not accepted; write %s",
				    prefix_format(&right, prefix));
	}
	return error_misuse("bad-length", object_of(NULL, text),
			    "the length of a prefix is 0 to %u%s", family_bits(address),
			    *length == '0' ? ", without leading zeros" : "");
}

int prefix_parse(const char *text, struct sl_prefix *ret)
{
	static const char *const words[] = {"default"};
	char address[INET6_ADDRSTRLEN] = "", right[PREFIX_TEXT];
	const char *slash = strchr(text, '/'), *end;
	struct sl_prefix prefix, cut;
	unsigned int length;
	const struct sl_prefix all = mapped();
	bool is_mapped;
	int err;

	if (!strcmp(text, "default") || !strcmp(text, "any")) {
		*ret = (struct sl_prefix){0};
		return 0;
	}
	/*
	 * Suggest `default` if the text resembles a known word. Do not compare texts that contain
	 * ".:/", because files may contain millions of addresses. Refuse `all`, because it could
	 * mean all sources, all rules, or the limit named "all".
	 */
	if (!text[strcspn(text, ".:/")] &&
	    (!strcmp(text, "all") || nearly_find(text, words, ARRAY_SIZE(words))))
		return error_misuse("bad-address", object_of(NULL, text),
				    "not an address; did you mean 'default', which covers all "
				    "sources?");
	if (!slash)
		return address_parse(text, ret);
	if ((size_t)(slash - text) >= sizeof(address))
		return error_misuse("bad-address", object_of(NULL, text),
				    "not a prefix; write 192.0.2.0/24 or 2001:db8::/32");
	memcpy(address, text, slash - text);
	err = address_read(address, &prefix);
	if (err)
		return err;
	end = number_read(slash + 1, family_bits(&prefix), &length);
	if (!end || *end)
		return refuse_length(text, slash + 1, &prefix);
	is_mapped = length < 96 && prefix_covers(&all, &prefix);
	prefix.bits = SL_FAMILY_BITS + length;
	if (is_mapped || surrounds_mapped(&prefix))
		return error_misuse("bad-length", object_of(NULL, text),
				    "an IPv4-mapped prefix has a length of 96 to 128; write "
				    "::ffff:192.0.2.0/120, or 192.0.2.0/24");
	cut = prefix_shorten(&prefix, prefix.bits);
	if (!prefix_equal(&prefix, &cut))
		return error_misuse("host-bits", object_of(NULL, text),
				    "bits beyond its length; did you mean %s?",
				    prefix_format(&cut, right));
	*ret = prefix_unmap(&prefix);
	return 0;
}

static int value_prefix_parse(const struct value_type *type, const char *what, const char *text,
			      void *ret)
{
	(void)what;
	return type == &value_prefix ? prefix_parse(text, ret) : address_parse(text, ret);
}

const struct value_type value_prefix = {.name = "default|PREFIX", .parse = value_prefix_parse};
const struct value_type value_address = {.name = "ADDRESS", .parse = value_prefix_parse};

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

bool prefix_is_sound(const struct sl_prefix *prefix)
{
	struct sl_prefix cut = {0};

	if (prefix->bits) {
		if ((!prefix_is_ipv4(prefix) && !prefix_is_ipv6(prefix)) ||
		    prefix->bits < SL_FAMILY_BITS ||
		    prefix->bits > SL_FAMILY_BITS + family_bits(prefix) || surrounds_mapped(prefix))
			return false;
		cut = prefix_shorten(prefix, prefix->bits);
		cut = prefix_unmap(&cut);
	}
	return prefix_equal(prefix, &cut);
}

bool prefix_covers(const struct sl_prefix *prefix, const struct sl_prefix *address)
{
	struct sl_prefix cut;

	if (prefix->bits > address->bits)
		return false;
	cut = prefix_shorten(address, prefix->bits);
	return prefix_equal(prefix, &cut);
}

int prefix_compare(const struct sl_prefix *a, const struct sl_prefix *b)
{
	int order = memcmp(&a->family, &b->family, sizeof(a->family));

	if (!order)
		order = memcmp(a->addr, b->addr, sizeof(a->addr));
	return order ? order : (a->bits > b->bits) - (a->bits < b->bits);
}

struct sl_prefix prefix_source(const struct sl_prefix *address)
{
	__u64 addr[2];

	memcpy(addr, address->addr, sizeof(addr));
	if (prefix_is_ipv6(address) && address->bits > SL_FAMILY_BITS + 64 &&
	    !identity_is_whole(addr))
		return prefix_shorten(address, SL_FAMILY_BITS + 64);
	return *address;
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

/* Returns the last address of a prefix. */
static struct sl_prefix prefix_last(const struct sl_prefix *prefix)
{
	struct sl_prefix last = *prefix;

	for (unsigned int bit = prefix->bits - SL_FAMILY_BITS; bit < family_bits(prefix); bit++)
		last.addr[bit / 8] |= 0x80 >> bit % 8;
	last.bits = SL_FAMILY_BITS + family_bits(prefix);
	return last;
}

bool prefix_of_range(struct sl_prefix *from, const struct sl_prefix *to, struct sl_prefix *ret)
{
	struct sl_prefix part = *from, last;
	int byte = family_bits(from) / 8 - 1;

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
	*from = last;
	while (byte >= 0 && !++from->addr[byte])
		byte--;
	if (byte < 0) /* no address follows the last address of the family */
		from->bits = 0;
	*ret = prefix_unmap(&part);
	return true;
}
