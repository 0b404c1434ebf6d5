// SPDX-License-Identifier: GPL-2.0
#include "share/lookup.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

struct lookup {
	struct gaicb request;
	struct addrinfo hints;
	struct lookup *next; /* in the list of lookup_leave() */
	char host[];
};

bool host_is_address(const char *host)
{
	struct in6_addr address;

	return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

struct lookup *lookup_begin(const char *host)
{
	struct lookup *lookup = calloc(1, sizeof(*lookup) + strlen(host) + 1);
	struct gaicb *list[1];

	if (!lookup)
		return NULL;
	strcpy(lookup->host, host);
	lookup->hints.ai_socktype = SOCK_STREAM;
	lookup->request.ar_name = lookup->host;
	lookup->request.ar_request = &lookup->hints;
	list[0] = &lookup->request;
	if (!getaddrinfo_a(GAI_NOWAIT, list, 1, NULL))
		return lookup;
	free(lookup);
	return NULL;
}

bool lookup_is_done(const struct lookup *lookup)
{
	return gai_error((struct gaicb *)&lookup->request) != EAI_INPROGRESS;
}

bool lookup_take(const struct lookup *lookup, unsigned int attempt, char text[NI_MAXHOST])
{
	const struct addrinfo *first = lookup->request.ar_result, *one;
	unsigned int count = 0;

	if (gai_error((struct gaicb *)&lookup->request) || !first)
		return false;
	for (one = first; one; one = one->ai_next)
		count++;
	one = first;
	for (unsigned int i = 0; i < attempt % count; i++)
		one = one->ai_next;
	return !getnameinfo(one->ai_addr, one->ai_addrlen, text, NI_MAXHOST, NULL, 0,
			    NI_NUMERICHOST);
}

bool lookup_end(struct lookup *lookup)
{
	if (!lookup)
		return true;
	if (gai_cancel(&lookup->request) == EAI_NOTCANCELED)
		return false;
	if (lookup->request.ar_result)
		freeaddrinfo(lookup->request.ar_result);
	free(lookup);
	return true;
}

void lookup_leave(struct lookup *lookup, struct lookup **left)
{
	struct lookup *all = *left;

	if (lookup) {
		lookup->next = all;
		all = lookup;
	}
	*left = NULL;
	while ((lookup = all)) {
		all = lookup->next;
		if (lookup_end(lookup))
			continue;
		lookup->next = *left;
		*left = lookup;
	}
}
