// SPDX-License-Identifier: GPL-2.0
/*
 * Tests route_parse() with arbitrary bytes. If it accepts a request target, the returned values
 * must be within their bounds. Input bytes from 128 on select words of a target.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "serve/route.h"

#define TEXT_MAX 2048

static const char *const grammar[] = {
	"/",	      "/metrics", "/healthz",	"/api/v1/",   "status",	     "stats",
	"sources",    "check",	  "limits",	"lists",      "doctor",	     "live",
	"events",     "gates",	  "?",		"&",	      "=",	     "gate=",
	"within=",    "top=",	  "skip=",	"sort=",      "address=",    "proto=",
	"port=",      "syn",	  "unread",	"fragment=",  "vlan=",	     "size=",
	"to=",	      "hook=",	  "since=",	"192.0.2.1",  "2001:db8::1", "10.0.0.0/8",
	"%3a",	      "%2F",	  "%00",	"busiest",    "level",	     "dropped",
	"sport=",     "flags=",	  "syn,ack",	"tls-hello=", "dns-query=",  "quic-initial=",
	"icmp-type=", "length=",  "dscp=",	"8",	      "udp",	     "later",
	"egress",     "65535",	  "4294967296", "yes",	      "+",
};

static void expect(bool truth)
{
	if (!truth)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char target[TEXT_MAX];
	struct route route;
	size_t length = 0;
	int err;

	for (size_t i = 0; i < size && length < TEXT_MAX - 16; i++) {
		if (data[i] < 128 && data[i])
			target[length++] = data[i];
		else
			length += sprintf(target + length, "%s",
					  grammar[data[i] % ARRAY_SIZE(grammar)]);
	}
	target[length] = '\0';
	err = route_parse(target, &route);
	expect(!err || err == -EINVAL || err == -ENOENT);
	if (err)
		return 0;
	expect(route.id < ROUTES && strlen(route.gate) <= GATE_NAME);
	expect(route.sources.top <= ROUTE_SOURCES_MAX && route.sources.order < ORDERS);
	expect(route.live.top <= ROUTE_LIVE_MAX && route.live.order < LIVE_ORDERS);
	expect(prefix_is_sound(&route.sources.within) && prefix_is_sound(&route.live.within));
	expect(prefix_is_sound(&route.check.source) && prefix_is_sound(&route.check.to));
	expect(route.id != ROUTE_CHECK || prefix_is_host(&route.check.source));
	expect(route.check.port <= UINT16_MAX + 1 && route.check.vlan <= 4094);
	expect(route.check.sport <= UINT16_MAX + 1 && route.check.flags <= UINT8_MAX + 1);
	expect(route.check.length <= UINT16_MAX && route.check.dscp < 64);
	return 0;
}
