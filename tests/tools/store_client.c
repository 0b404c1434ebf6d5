// SPDX-License-Identifier: GPL-2.0
/*
 * store_client ADDRESS TIMEOUT_MS [USER PASSWORD [CA_FILE]]
 *
 * Reads commands from standard input, runs them by user/share/store.h, and prints a line of JSON
 * for each command. If USER is "-", it logs in without a user name.
 *
 *   round KEY TAKEN ASKED...   sends a round with these keys. !KEY also sets the key's TTL. KEY#0
 *                              also reads the key's block. KEY#MS also reads the block, and
 *                              reports a block of MS milliseconds.
 *   nodes KEY NODE ALIVE_MS    counts the nodes
 *   counts                     prints the counters of the store
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "share/store.h"

#define EXPIRE_S 60
#define NO_TLS	 3 /* exit status of a client that was built without TLS */

static int64_t milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/*
 * Prints the status, duration and error of a reply. In the text of the error, prints "'" instead of
 * each quote and backslash.
 */
static void answer_end(const struct store *store, int status, int64_t begun)
{
	printf("\"status\": %d, \"ms\": %" PRId64 ", \"error\": \"", status,
	       milliseconds() - begun);
	for (const char *c = store_error(store); *c; c++)
		putchar(*c == '"' || *c == '\\' ? '\'' : *c);
	printf("\"}\n");
}

static void block_parse(struct store_item *item)
{
	char *ms = strchr(item->key, '#');

	if (!ms)
		return;
	*ms++ = '\0';
	item->block_ms = strtoull(ms, NULL, 10);
	snprintf(item->block_key, STORE_KEY, "%.*s:block", STORE_KEY - 8, item->key);
}

static void round_run(struct store *store, char **rest)
{
	size_t count = 0, room = 0;
	struct store_item *items = NULL;
	int64_t begun;
	int status;

	for (char *key; (key = strtok_r(NULL, " \n", rest));) {
		char *taken = strtok_r(NULL, " \n", rest), *asked = strtok_r(NULL, " \n", rest);

		if (count == room)
			items = reallocarray(items, room = 2 * room + 1, sizeof(*items));
		if (!items || !taken || !asked)
			exit(2);
		memset(&items[count], 0, sizeof(*items));
		items[count].lasts = *key == '!';
		snprintf(items[count].key, STORE_KEY, "%s", key + items[count].lasts);
		block_parse(&items[count]);
		items[count].delta.taken = strtoll(taken, NULL, 10);
		items[count++].delta.asked = strtoll(asked, NULL, 10);
	}
	begun = milliseconds();
	status = store_round(store, items, count, EXPIRE_S);
	printf("{\"items\": [");
	for (size_t i = 0; i < count; i++) {
		printf("%s[%s, %s, %" PRId64 ", %" PRId64, i ? ", " : "",
		       items[i].answered ? "true" : "false", items[i].sent ? "true" : "false",
		       items[i].answered ? items[i].total.taken : 0,
		       items[i].answered ? items[i].total.asked : 0);
		if (*items[i].block_key)
			printf(", %" PRIu64, items[i].blocked_ms);
		printf("]");
	}
	printf("], \"expires\": [");
	for (size_t i = 0; i < count; i++)
		printf("%s%s", i ? ", " : "", items[i].expires ? "true" : "false");
	printf("], ");
	answer_end(store, status, begun);
	free(items);
}

static void nodes_run(struct store *store, char **rest)
{
	const char *key = strtok_r(NULL, " \n", rest), *node = strtok_r(NULL, " \n", rest);
	const char *alive = strtok_r(NULL, " \n", rest);
	int64_t begun = milliseconds();
	unsigned int nodes = 0;
	int status;

	if (!alive)
		exit(2);
	status = store_nodes(store, key, node, atoi(alive), &nodes);
	printf("{\"nodes\": %u, ", nodes);
	answer_end(store, status, begun);
}

static void counts_print(const struct store *store)
{
	const struct store_counts *c = store_counts(store);
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{"commands", c->commands},
		{"lost", c->lost},
		{"moved", c->refusals[REFUSAL_MOVED]},
		{"asked", c->refusals[REFUSAL_ASK]},
		{"later", c->refusals[REFUSAL_LATER]},
		{"refused", c->refused},
		{"bad", c->bad},
		{"connects", c->connects},
		{"is_cluster", c->is_cluster},
	};

	printf("{");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		printf("\"%s\": %" PRIu64 ", ", counts[i].name, counts[i].value);
	printf("\"nodes\": %u}\n", c->nodes);
}

int main(int argc, char **argv)
{
	struct store_options options = {0};
	struct store *store;
	char *line = NULL;
	size_t size = 0;

	if (argc < 3)
		return 2;
	options.address = argv[1];
	options.timeout_ms = atoi(argv[2]);
	options.user = argc > 4 && strcmp(argv[3], "-") ? argv[3] : NULL;
	options.password = argc > 4 ? argv[4] : NULL;
	options.ca_file = argc > 5 ? argv[5] : NULL;
	store = store_open(&options);
	if (!store) {
		bool lacks_tls = errno == EOPNOTSUPP;

		perror("store_open");
		return lacks_tls ? NO_TLS : 1;
	}
	while (getline(&line, &size, stdin) > 0) {
		char *rest = NULL, *word = strtok_r(line, " \n", &rest);

		if (word && !strcmp(word, "round"))
			round_run(store, &rest);
		else if (word && !strcmp(word, "nodes"))
			nodes_run(store, &rest);
		else
			counts_print(store);
		fflush(stdout);
	}
	free(line);
	store_close(store);
	return 0;
}
