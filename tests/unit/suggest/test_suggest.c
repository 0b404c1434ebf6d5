// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/suggest/suggest.h, which proposes limits. The packets are simulated, so the best
 * limits are known.
 */
#include "suggest/suggest.h"

#include <arpa/inet.h>

#include "credit.h"
#include "random.h"
#include "rules/matches.h"
#include "test.h"
#include "wire.h"

#define STEP_NS 1000000ULL /* ns between the times at which bursts can start */
#define START	1700000000000000000ULL

static struct suggest suggest;

/* A stream of packets: a burst of `size` packets every `gap` ms, from `from` ms to `to` ms. */
struct stream {
	const char *addr;
	unsigned int size, gap, from, to;
	uint16_t facts; /* beside SL_FACT_ANY */
	uint8_t proto;
	uint16_t port;
	uint32_t bytes; /* length of each packet; 0: depends on the time */
};

static struct suggest_packet packet_of(const struct stream *stream, uint64_t ns)
{
	struct suggest_packet packet = {
		.ns = ns,
		.packets = 1,
		.bytes = stream->bytes ? stream->bytes : 60 + ns / STEP_NS % 1009,
		.facts = {.facts = SL_FACT_ANY | stream->facts,
			  .proto = stream->proto,
			  .port = stream->port},
	};
	packet.ipv4 = inet_pton(AF_INET, stream->addr, packet.addr) == 1;
	if (!packet.ipv4)
		assert_int_equal(inet_pton(AF_INET6, stream->addr, packet.addr), 1);
	return packet;
}

typedef void handler(const struct suggest_packet *packet);

static void add(const struct suggest_packet *packet)
{
	assert_int_equal(suggest_add(&suggest, packet), 0);
}

static void try(const struct suggest_packet *packet)
{
	suggest_try(&suggest, packet);
}

/* Calls handle() for each packet of the streams, in order of time. */
static void hand_over(const struct stream *streams, unsigned int count, unsigned int ms,
		      handler *handle)
{
	for (unsigned int at = 0; at < ms; at++)
		for (unsigned int i = 0; i < count; i++) {
			const struct stream *stream = &streams[i];
			struct suggest_packet packet;

			if (at < stream->from || (stream->to && at >= stream->to) ||
			    (at - stream->from) % stream->gap)
				continue;
			packet = packet_of(stream, START + at * STEP_NS);
			for (unsigned int n = 0; n < stream->size; n++)
				handle(&packet);
		}
}

static void begin_with(unsigned int headroom, uint32_t most)
{
	struct suggest_settings settings = {SUGGEST_QUANTILE, headroom, most};

	assert_int_equal(suggest_begin(&suggest, &settings), 0);
}

/*
 * Adds the packets of all streams, and computes proposals. Counts the packets that the proposals
 * would refuse.
 */
static void run(const struct stream *streams, unsigned int count, unsigned int ms,
		unsigned int headroom)
{
	begin_with(headroom, POPULATION_MAX);
	hand_over(streams, count, ms, add);
	assert_int_equal(suggest_propose(&suggest), 0);
	if (suggest_must_try(&suggest))
		hand_over(streams, count, ms, try);
	suggest_finish(&suggest);
}

static int end(void **state)
{
	(void)state;
	suggest_free(&suggest);
	return 0;
}

static const struct proposal *proposal_of(enum suggest_class class)
{
	return &suggest.proposal[class][SUGGEST_SOURCES];
}

/*
 * Fills addresses and streams with `count` sources, whose bursts are equal but begin at different
 * times.
 */
static void clients_make(struct stream *streams, char (*addr)[INET6_ADDRSTRLEN], unsigned int count,
			 struct stream model)
{
	for (unsigned int i = 0; i < count; i++) {
		snprintf(addr[i], sizeof(*addr), "10.0.%u.%u", i / 250, 1 + i % 250);
		streams[i] = model;
		streams[i].addr = addr[i];
		streams[i].from = model.from + 7 * i % model.gap;
	}
}

#define CLIENTS 100
static struct stream clients[CLIENTS + 5];
static char addresses[CLIENTS][INET6_ADDRSTRLEN];

static const struct stream hundred = {"192.0.2.1", 20, 200, 0, 0, SL_FACT_UDP, 17, 9, 0};

TEST(test_a_source_of_100_pps_in_bursts_of_20)
{
	run(&hundred, 1, 20000, 0);
	assert_int_equal(proposal_of(SUGGEST_ALL)->refusal, SUGGEST_PROPOSED);
	assert_int_equal(proposal_of(SUGGEST_ALL)->limit.spec.rate, 100);
	assert_int_equal(proposal_of(SUGGEST_ALL)->limit.spec.burst, 20);
	assert_int_equal(proposal_of(SUGGEST_ALL)->refused_packets, 0);
	assert_int_equal(proposal_of(SUGGEST_ALL)->limit.spec.action, SL_ACTION_OBSERVE);
	assert_false(suggest_must_try(&suggest));
	end(NULL);
}

/*
 * Sends the packets of stream `hundred` to a token bucket. Returns the number of refused packets.
 */
static uint64_t hundred_refused(uint64_t rate, uint64_t burst)
{
	struct sl_limit limit = {.cost = SEC / rate, .burst = burst * (SEC / rate)};
	struct sl_state state;
	uint64_t refused = 0;

	limit.refill = limit.burst;
	state = credit_full(&limit, 0);
	for (unsigned int at = 0; at < 20000; at += hundred.gap)
		for (unsigned int n = 0; n < hundred.size; n++) {
			struct sl_slice slice = {0};

			refused +=
				!credit_charge(&limit, &state, &slice, 0, limit.cost, at * MS, 0);
		}
	return refused;
}

TEST(test_one_packet_less_refuses)
{
	assert_int_equal(hundred_refused(100, 20), 0);
	assert_true(hundred_refused(100, 19) >= 1);
}

TEST(test_the_first_packet_of_a_source_counts)
{
	struct stream twice = {.addr = "192.0.2.1"};
	struct suggest_packet packet = packet_of(&twice, START);

	begin_with(0, POPULATION_MAX);
	add(&packet);
	add(&packet);
	assert_int_equal(member_burst(&suggest.population[0][0].items[0], 0), 2);
	end(NULL);
}

TEST(test_a_capture_whose_times_begin_at_0)
{
	struct stream twice = {.addr = "192.0.2.1"};
	struct suggest_packet first = packet_of(&twice, 0), second = packet_of(&twice, SEC_NS);

	begin_with(0, POPULATION_MAX);
	add(&first);
	add(&second);
	assert_int_equal(suggest_span_ns(&suggest), SEC_NS);
	assert_int_equal(member_burst(&suggest.population[0][0].items[0], 0), 1);
	end(NULL);
}

TEST(test_a_burst_refills_within_a_tenth_of_the_capture)
{
	/* each client sends a single burst of 300 packets, so any rate would suffice */
	clients_make(clients, addresses, CLIENTS, (struct stream){.size = 300, .gap = 100000});
	clients[CLIENTS] = (struct stream){.addr = "198.51.100.7", .size = 1, .gap = 1000};
	run(clients, CLIENTS + 1, 20000, 0);
	assert_int_equal(proposal_of(SUGGEST_ALL)->limit.spec.burst, 300);
	assert_int_equal(proposal_of(SUGGEST_ALL)->limit.spec.rate, 200);
	/* the limit refills in 1.5 s, and a source is new for 3 s more */
	assert_int_equal(suggest.budget.age_ns, 16 * SEC_NS);
	end(NULL);
}

TEST(test_headroom_raises_rate_and_burst)
{
	run(&hundred, 1, 20000, 50);
	assert_int_equal(proposal_of(SUGGEST_ALL)->limit.spec.rate, 150);
	assert_int_equal(proposal_of(SUGGEST_ALL)->limit.spec.burst, 30);
	end(NULL);
}

static const struct {
	uint64_t number;
	unsigned int headroom;
	uint64_t expected;
} headrooms[] = {
	{1234, 0, 1234}, {66, 50, 99},	  {67, 50, 110},
	{1, 1, 2},	 {1000, 1, 1100}, {1000, 1000, 11000},
};

TEST(test_headroom_rounds_up_to_two_digits)
{
	for (size_t i = 0; i < ARRAY_SIZE(headrooms); i++)
		assert_int_equal(headroom_add(headrooms[i].number, headrooms[i].headroom),
				 headrooms[i].expected);
}

static const struct {
	unsigned int quantile;
	uint64_t burst;
} quantiles[] = {{50000, 5}, {50001, 6}, {90000, 9}, {99900, 10}, {SUGGEST_WHOLE, 10}};

TEST(test_quantiles_of_ten_sources)
{
	clients_make(clients, addresses, 10, (struct stream){.gap = 1000});
	for (unsigned int i = 0; i < 10; i++)
		clients[i].size = 10 - i;
	for (size_t i = 0; i < ARRAY_SIZE(quantiles); i++) {
		struct suggest_settings settings = {quantiles[i].quantile, 0, POPULATION_MAX};

		assert_int_equal(suggest_begin(&suggest, &settings), 0);
		hand_over(clients, 10, 20000, add);
		assert_int_equal(suggest_propose(&suggest), 0);
		assert_int_equal(proposal_of(SUGGEST_ALL)->curve.burst[LADDER_RATES - 1],
				 quantiles[i].burst);
		assert_int_equal(proposal_of(SUGGEST_ALL)->p50, 5);
		end(NULL);
	}
}

TEST(test_outliers_are_named_and_do_not_raise_the_limit)
{
	const struct proposal *all = proposal_of(SUGGEST_ALL);
	char name[INET_ADDRSTRLEN];

	clients_make(clients, addresses, CLIENTS, (struct stream){.size = 2, .gap = 200});
	clients[CLIENTS] = (struct stream){.addr = "198.51.100.7", .size = 1, .gap = 1};
	run(clients, CLIENTS + 1, 20000, 0);
	assert_int_equal(all->outliers, 1);
	assert_string_equal(inet_ntop(AF_INET, all->outlier[0].addr, name, sizeof(name)),
			    "198.51.100.7");
	assert_int_equal(all->outlier[0].demand, 1000);
	assert_int_equal(all->rest, 10);
	assert_int_equal(all->max, 1000);
	assert_int_equal(all->p50, 10);
	assert_int_equal(all->limit.spec.rate, 10);
	assert_int_equal(all->limit.spec.burst, 2);
	/* the limit passes a burst of 2, and then 10 packets per second */
	assert_int_equal(all->refused_members, 1);
	assert_int_equal(all->refused_packets, 20000 - 2 - 199);
	end(NULL);
}

static const struct {
	const char *what;
	unsigned int members, loud, gap; /* a loud member sends a packet every `gap` ms */
	unsigned int outliers;
} loud_members[] = {
	{"more than 10 times the demand", 100, 1, 5, 1},
	{"10 times the demand", 100, 1, 10, 0},
	{"three of 100", 100, 3, 5, 3},
	{"four of 100", 100, 4, 5, 0},
	{"four of 400", 400, 4, 5, 4},
	{"five of 400", 400, 5, 5, 0},
	{"one of 10", 10, 1, 5, 1},
	{"one of 9", 9, 1, 5, 0},
};

TEST(test_how_many_members_can_be_outliers)
{
	static struct stream many[400];
	static char names[400][INET6_ADDRSTRLEN];

	for (size_t i = 0; i < ARRAY_SIZE(loud_members); i++) {
		unsigned int members = loud_members[i].members, loud = loud_members[i].loud;

		print_message("%s\n", loud_members[i].what);
		clients_make(many, names, members, (struct stream){.size = 1, .gap = 100});
		for (unsigned int at = 0; at < loud; at++)
			many[at].gap = loud_members[i].gap;
		run(many, members, 10000, 0);
		assert_int_equal(proposal_of(SUGGEST_ALL)->outliers, loud_members[i].outliers);
		end(NULL);
	}
}

TEST(test_no_outlier_if_the_demands_have_no_gap)
{
	unsigned int sizes[] = {2, 8, 30, 110, 400};

	clients_make(clients, addresses, CLIENTS, (struct stream){.size = 2, .gap = 1000});
	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++)
		clients[i].size = sizes[i];
	run(clients, CLIENTS, 20000, 0);
	assert_int_equal(proposal_of(SUGGEST_ALL)->outliers, 0);
	assert_int_equal(proposal_of(SUGGEST_ALL)->max, 500); /* 400 is rounded up by ladder.h */
	end(NULL);
}

TEST(test_too_few_packets_or_too_short_a_time)
{
	struct stream slow = {.addr = "192.0.2.1", .size = 1, .gap = 100};

	run(&slow, 1, 60000, 0); /* 600 packets */
	assert_int_equal(proposal_of(SUGGEST_ALL)->refusal, SUGGEST_TOO_LITTLE);
	end(NULL);
	run(&hundred, 1, 9000, 0);
	assert_int_equal(proposal_of(SUGGEST_ALL)->refusal, SUGGEST_TOO_LITTLE);
	end(NULL);
	run(&hundred, 0, 0, 0);
	assert_int_equal(proposal_of(SUGGEST_ALL)->refusal, SUGGEST_NO_PACKETS);
	end(NULL);
}

#define RANDOM_SOURCES 20
#define RANDOM_FRAMES  20000

/* A token bucket, written without credit.h. Its level is in ticks. */
struct plain_bucket {
	uint64_t level, last, refused;
};

static void plain_charge(struct plain_bucket *bucket, uint64_t burst, uint64_t cost, uint64_t now,
			 unsigned int packets)
{
	bucket->level += now - bucket->last;
	bucket->last = now;
	if (bucket->level > burst)
		bucket->level = burst;
	if (bucket->level >= cost * packets)
		bucket->level -= cost * packets;
	else
		bucket->refused += packets;
}

/* Random sources, some of them far above the limit, whose bursts are large enough for slices. */
TEST(test_refused_packets_are_those_of_a_plain_bucket)
{
	static struct suggest_packet frames[RANDOM_FRAMES];
	static unsigned int source_of[RANDOM_FRAMES];
	struct suggest_settings settings = {50000, 0, POPULATION_MAX};
	const struct proposal *all = proposal_of(SUGGEST_ALL);

	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct plain_bucket plain[RANDOM_SOURCES] = {0};
		uint64_t now = START, refused = 0, state = seed, cost, burst;
		unsigned int source = 0, left = 0, members = 0;

		for (unsigned int i = 0; i < RANDOM_FRAMES; i++, left--) {
			struct stream stream = {.addr = addresses[0]};

			if (!left) { /* a burst of another source */
				source = random_next(&state) % RANDOM_SOURCES;
				source = random_next(&state) % (source + 1);
				left = 1 + random_next(&state) % 400;
				now += random_next(&state) % (SEC_NS / 4);
			}
			now += random_next(&state) % (SEC_NS / 2000);
			snprintf(addresses[0], sizeof(addresses[0]), "10.4.%u.1", source);
			frames[i] = packet_of(&stream, now);
			frames[i].packets = 1 + random_next(&state) % 3;
			source_of[i] = source;
		}
		assert_int_equal(suggest_begin(&suggest, &settings), 0);
		for (unsigned int i = 0; i < RANDOM_FRAMES; i++)
			add(&frames[i]);
		assert_int_equal(suggest_propose(&suggest), 0);
		assert_int_equal(all->refusal, SUGGEST_PROPOSED);
		cost = (SEC + all->limit.spec.rate - 1) / all->limit.spec.rate;
		burst = all->limit.spec.burst * cost;
		for (unsigned int i = 0; i < RANDOM_SOURCES; i++)
			plain[i].level = burst;
		for (unsigned int i = 0; i < RANDOM_FRAMES; i++) {
			try(&frames[i]);
			plain_charge(&plain[source_of[i]], burst, cost,
				     (frames[i].ns - START) * SL_TICKS_PER_NS, frames[i].packets);
		}
		for (unsigned int i = 0; i < RANDOM_SOURCES; i++) {
			refused += plain[i].refused;
			members += plain[i].refused > 0;
		}
		assert_true(refused > 0);
		assert_int_equal(all->refused_packets, refused);
		assert_int_equal(all->refused_members, members);
		end(NULL);
	}
}

TEST(test_a_class_whose_limit_would_be_useless)
{
	struct stream udp = hundred, dns = hundred;

	udp.facts |= SL_FACT_PROTO | SL_FACT_PORT;
	run(&udp, 1, 20000, 0); /* all packets are UDP */
	assert_int_equal(proposal_of(SUGGEST_UDP)->refusal, SUGGEST_SAME);
	assert_int_equal(suggest.proposal[0][SUGGEST_NETWORKS].refusal, SUGGEST_SAME);
	end(NULL);

	dns.facts |= SL_FACT_PROTO | SL_FACT_PORT;
	dns.port = 53;
	clients_make(clients, addresses, CLIENTS, (struct stream){.size = 2, .gap = 200});
	clients[CLIENTS] = dns; /* the only source that sends DNS packets */
	run(clients, CLIENTS + 1, 20000, 0);
	assert_int_equal(proposal_of(SUGGEST_DNS)->packets, 2000);
	assert_int_equal(proposal_of(SUGGEST_DNS)->refusal, SUGGEST_TOO_LITTLE);
	end(NULL);
}

/* Adds `packets` packets of source number `number`. `model` describes a packet. */
static void source_add(struct stream model, unsigned int number, unsigned int packets)
{
	char name[INET6_ADDRSTRLEN];

	snprintf(name, sizeof(name), "10.3.%u.%u", number / 250, number % 250);
	model.addr = name;
	for (unsigned int i = 0; i < packets; i++) {
		struct suggest_packet packet = packet_of(&model, START + i);

		if (!model.bytes)
			packet.bytes = 60 + suggest.packets % 1009;
		add(&packet);
	}
}

static const struct {
	const char *what;
	unsigned int others, packets; /* other sources, and the packets of each */
	unsigned int busy, busy_packets;
	bool few_sources;
	unsigned int busiest;
} shares[] = {
	{"one source sends 80 %", 10, 20, 1, 800, true, 1},
	{"one source sends 79 %", 10, 21, 1, 790, false, 2},
	{"one of 10 sources", 9, 20, 1, 800, true, 1},
	{"one of 9 sources", 8, 20, 1, 800, false, 1},
	{"three of 30 sources", 27, 1, 3, 100, true, 3},
	{"three of 29 sources", 26, 1, 3, 100, false, 3},
	{"all sources send the same", 100, 20, 0, 0, false, 3},
};

TEST(test_few_sources_look_like_an_attack)
{
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		print_message("%s\n", shares[i].what);
		begin_with(0, POPULATION_MAX);
		for (unsigned int n = 0; n < shares[i].others; n++)
			source_add((struct stream){0}, n, shares[i].packets);
		for (unsigned int n = 0; n < shares[i].busy; n++)
			source_add((struct stream){0}, 1000 + n, shares[i].busy_packets);
		assert_int_equal(suggest_propose(&suggest), 0);
		assert_int_equal(suggest.attack.few_sources, shares[i].few_sources);
		assert_int_equal(suggest.attack.busiest, shares[i].busiest);
		assert_false(suggest.attack.one_shape);
		end(NULL);
	}
}

#define UDP_FACTS SL_FACT_UDP | SL_FACT_PROTO, 17
#define TCP_FACTS SL_FACT_TCP | SL_FACT_PROTO, 6
#define SYN_FACTS SL_FACT_TCP | SL_FACT_PROTO | SL_FACT_SYN, 6

/*
 * Each of `sources` sources sends `packets` packets of one shape. First, source 0 sends `other`
 * packets of different lengths.
 */
static const struct {
	const char *what;
	unsigned int other, sources, packets;
	uint16_t facts;
	uint8_t proto;
	bool one_shape;
} shapes[] = {
	{"80 % have one shape, and come last", 20, 10, 8, UDP_FACTS, true},
	{"79 %", 21, 79, 1, UDP_FACTS, false},
	{"9 sources", 0, 9, 100, UDP_FACTS, false},
	{"10 sources", 0, 10, 100, UDP_FACTS, true},
	{"SYN", 0, 10, 100, SYN_FACTS, true},
	{"ACKs of a download", 0, 10, 100, TCP_FACTS, false},
	{"TCP of sources that send one packet", 1, 10, 1, TCP_FACTS, true},
};

TEST(test_one_shape_looks_like_an_attack)
{
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		struct stream model = {.facts = shapes[i].facts, .proto = shapes[i].proto};

		print_message("%s\n", shapes[i].what);
		begin_with(0, POPULATION_MAX);
		source_add(model, 0, shapes[i].other);
		model.bytes = 1500;
		for (unsigned int n = 0; n < shapes[i].sources; n++)
			source_add(model, n, shapes[i].packets);
		assert_int_equal(suggest_propose(&suggest), 0);
		assert_int_equal(suggest.attack.one_shape, shapes[i].one_shape);
		assert_int_equal(suggest.attack.shape_class, SUGGEST_ALL);
		if (suggest.attack.one_shape) {
			assert_int_equal(suggest.attack.shape_bytes, 1500);
			assert_int_equal(suggest.attack.shape_proto, shapes[i].proto);
			assert_int_equal(suggest.attack.shape_syn, !!(model.facts & SL_FACT_SYN));
		}
		end(NULL);
	}
}

TEST(test_tcp_of_single_packets_needs_half_of_the_sources)
{
	const struct stream ack = {.facts = SL_FACT_TCP | SL_FACT_PROTO, .proto = 6, .bytes = 60};

	for (unsigned int talkers = 10; talkers <= 11; talkers++) {
		begin_with(0, POPULATION_MAX);
		for (unsigned int n = 0; n < 20; n++)
			source_add(ack, n, n < talkers ? 2 : 1);
		assert_int_equal(suggest_propose(&suggest), 0);
		assert_int_equal(suggest.attack.one_shape, talkers == 10);
		end(NULL);
	}
}

/*
 * Each of `sources` sources sends `packets` SYNs of 60 bytes. Each of `talkers` more sources sends
 * 3 of them. `odd` more SYNs have another length. A client sends other TCP packets.
 */
static const struct {
	const char *what;
	unsigned int sources, packets, talkers, odd;
	bool one_shape;
} floods[] = {
	{"1,000 sources", 1000, 1, 0, 0, true},
	{"999 sources", 999, 1, 0, 0, false},
	{"two packets of each source", 1000, 2, 0, 0, true},
	{"three packets of each source", 1000, 3, 0, 0, false},
	{"90 % are brief", 1800, 1, 200, 0, true},
	{"89 % are brief", 1780, 1, 220, 0, false},
	{"90 % have one shape", 1800, 1, 0, 200, true},
	{"89 % have one shape", 1780, 1, 0, 220, false},
};

TEST(test_forged_sources_of_a_class_look_like_an_attack)
{
	const struct stream client = {.facts = SL_FACT_TCP | SL_FACT_PROTO, .proto = 6};
	struct stream syn = client;

	syn.facts |= SL_FACT_SYN;
	for (size_t i = 0; i < ARRAY_SIZE(floods); i++) {
		unsigned int number = 0;

		print_message("%s\n", floods[i].what);
		begin_with(0, POPULATION_MAX);
		source_add(client, 5000, 3000);
		syn.bytes = 60;
		while (number < floods[i].sources)
			source_add(syn, number++, floods[i].packets);
		for (unsigned int n = 0; n < floods[i].talkers; n++)
			source_add(syn, number++, 3);
		syn.bytes = 1000;
		for (unsigned int n = 0; n < floods[i].odd; n++)
			source_add(syn, number++, 1);
		assert_int_equal(suggest_propose(&suggest), 0);
		assert_int_equal(suggest.attack.one_shape, floods[i].one_shape);
		assert_int_equal(suggest.attack.shape_class,
				 floods[i].one_shape ? SUGGEST_SYN : SUGGEST_ALL);
		end(NULL);
	}
}

static const struct {
	const char *what;
	uint16_t facts;
	uint8_t proto;
	uint16_t port;
	unsigned int classes; /* mask of the classes of the packet */
} classes[] = {
	{"TCP", SL_FACT_PROTO | SL_FACT_TCP | SL_FACT_PORT, 6, 80, 1 << SUGGEST_ALL},
	{"SYN", SL_FACT_PROTO | SL_FACT_TCP | SL_FACT_SYN | SL_FACT_PORT, 6, 80,
	 1 << SUGGEST_ALL | 1 << SUGGEST_SYN},
	{"DNS", SL_FACT_PROTO | SL_FACT_UDP | SL_FACT_PORT, 17, 53,
	 1 << SUGGEST_ALL | 1 << SUGGEST_DNS},
	{"QUIC", SL_FACT_PROTO | SL_FACT_UDP | SL_FACT_PORT, 17, 443,
	 1 << SUGGEST_ALL | 1 << SUGGEST_QUIC},
	{"UDP port 0", SL_FACT_PROTO | SL_FACT_UDP | SL_FACT_PORT, 17, 0,
	 1 << SUGGEST_ALL | 1 << SUGGEST_UDP},
	{"UDP port 54", SL_FACT_PROTO | SL_FACT_UDP | SL_FACT_PORT, 17, 54,
	 1 << SUGGEST_ALL | 1 << SUGGEST_UDP},
	{"UDP port 65535", SL_FACT_PROTO | SL_FACT_UDP | SL_FACT_PORT, 17, 65535,
	 1 << SUGGEST_ALL | 1 << SUGGEST_UDP},
	{"ICMP", SL_FACT_PROTO | SL_FACT_ICMP, 1, 0, 1 << SUGGEST_ALL | 1 << SUGGEST_ICMP},
	{"UDP, its port cut off", SL_FACT_PROTO | SL_FACT_UDP | SL_FACT_UNREAD, 17, 0,
	 1 << SUGGEST_ALL},
};

TEST(test_classes_of_packets)
{
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
		struct stream stream = {.addr = "2001:db8::1",
					.facts = classes[i].facts,
					.proto = classes[i].proto,
					.port = classes[i].port};
		struct suggest_packet packet = packet_of(&stream, START);

		print_message("%s\n", classes[i].what);
		begin_with(0, POPULATION_MAX);
		add(&packet);
		for (int c = 0; c < SUGGEST_CLASSES; c++)
			assert_int_equal(suggest.population[c][SUGGEST_SOURCES].packets,
					 classes[i].classes >> c & 1);
		assert_int_equal(suggest.unread, !!(classes[i].facts & SL_FACT_UNREAD));
		end(NULL);
	}
}

TEST(test_networks_and_sources)
{
	static const struct {
		const char *addr;
		unsigned int sources, networks; /* expected counts after this row */
	} rows[] = {
		{"192.0.2.1", 1, 1},	     {"192.0.2.9", 2, 1},
		{"192.0.3.1", 3, 2},	     {"2001:db8::1", 4, 3},
		{"2001:db8::2", 4, 3},	     {"2001:db8:0:1::1", 5, 3},
		{"2001:db8:0:100::1", 6, 4}, {"fe80::1", 7, 5},
		{"fe80::2", 8, 6}, /* in a link-local prefix, each address is a source */
	};

	begin_with(0, POPULATION_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stream stream = {.addr = rows[i].addr};
		struct suggest_packet packet = packet_of(&stream, START);

		print_message("%s\n", rows[i].addr);
		add(&packet);
		assert_int_equal(suggest.population[0][SUGGEST_SOURCES].count, rows[i].sources);
		assert_int_equal(suggest.population[0][SUGGEST_NETWORKS].count, rows[i].networks);
	}
	end(NULL);
}

TEST(test_limit_of_a_network_is_for_all_its_sources)
{
	const struct limit *limit = &suggest.proposal[0][SUGGEST_NETWORKS].limit;

	clients_make(clients, addresses, CLIENTS, (struct stream){.size = 1, .gap = 1000});
	run(clients, CLIENTS, 20000, 0);
	assert_int_equal(limit->spec.per[SL_IPV4], 24);
	assert_int_equal(limit->spec.per[SL_IPV6], 56);
	assert_string_equal(limit->spec.name, "all-net");
	assert_int_equal(limit->spec.rate, 100);
	assert_true(limit->spec.burst <= 100);
	end(NULL);
}

TEST(test_budget_of_new_sources)
{
	static char names[480][INET6_ADDRSTRLEN];
	static struct stream many[481];
	const struct newcomer_proposal *budget = &suggest.budget;

	many[0] = hundred; /* a source that sends from the start */
	for (unsigned int i = 0; i < 480; i++) {
		snprintf(names[i], sizeof(names[i]), "10.1.%u.%u", i / 250, i % 250);
		many[i + 1] =
			(struct stream){.addr = names[i], .size = 3, .gap = 20000, .from = 125 * i};
	}
	run(many, 481, 60000, 0);
	assert_int_equal(budget->refusal, SUGGEST_PROPOSED);
	assert_int_equal(budget->warm_up_ns, 15 * SEC_NS);
	assert_int_equal(budget->sources, 360); /* 8 new sources per second, in 45 s */
	assert_int_equal(budget->most, 8);
	assert_int_equal(budget->limit.spec.rate, 30);
	assert_int_equal(budget->curve.burst[budget->curve.knee], 3);
	/* includes the source that sends from time 0 */
	assert_int_equal(budget->limit.spec.burst, 7);
	end(NULL);
	run(many, 481, 44000, 0);
	assert_int_equal(budget->warm_up_ns, 3 * SEC_NS); /* 15 s are more than a third */
	end(NULL);
}

TEST(test_no_budget_without_new_sources)
{
	run(&hundred, 1, 20000, 0);
	assert_int_equal(suggest.budget.refusal, SUGGEST_NO_PACKETS);
	end(NULL);
}

TEST(test_more_sources_than_there_is_room_for)
{
	const struct population *sources = &suggest.population[0][SUGGEST_SOURCES];

	begin_with(0, 64);
	for (unsigned int round = 0; round < 20; round++)
		for (unsigned int i = 0; i < 1000; i++) {
			char name[INET6_ADDRSTRLEN];
			struct stream stream = {.addr = name};
			struct suggest_packet packet;

			snprintf(name, sizeof(name), "10.2.%u.%u", i / 250, i % 250);
			packet = packet_of(&stream, START + round * SEC_NS + i * 1000);
			add(&packet);
		}
	assert_int_equal(suggest_propose(&suggest), 0);
	assert_true(sources->count <= 64);
	assert_in_range(population_keys(sources), 500, 2000);
	assert_int_equal(sources->packets, 20000);
	for (unsigned int i = 0; i < sources->count; i++)
		assert_int_equal(sources->items[i].packets, 20);
	assert_int_equal(proposal_of(SUGGEST_ALL)->limit.spec.rate, 1);
	assert_int_equal(proposal_of(SUGGEST_ALL)->limit.spec.burst, 1);
	end(NULL);
}

/* In each of three rounds, 3,000 sources send one packet, and 1,000 sources send three. */
static void rounds_hand_over(handler *handle)
{
	for (unsigned int round = 0; round < 3; round++)
		for (unsigned int i = 0; i < 4000; i++) {
			char name[INET6_ADDRSTRLEN];
			struct stream stream = {.addr = name};
			struct suggest_packet packet;

			snprintf(name, sizeof(name), "10.5.%u.%u", i / 250, i % 250);
			packet = packet_of(&stream, START + round * 5 * SEC_NS + i);
			for (unsigned int n = 0; n < (i % 4 ? 1 : 3); n++)
				handle(&packet);
		}
}

/* The bounds are more than 5 standard deviations from the exact numbers. */
TEST(test_numbers_of_a_sample_are_estimates_for_all)
{
	struct suggest_settings settings = {50000, 0, 1024};
	const struct proposal *all = proposal_of(SUGGEST_ALL);

	assert_int_equal(suggest_begin(&suggest, &settings), 0);
	rounds_hand_over(add);
	assert_in_range(track_burst(&suggest.start[0], 0), 5000, 7000); /* 6,000 packets */
	assert_int_equal(suggest_propose(&suggest), 0);
	assert_int_equal(all->limit.spec.burst, 1);
	assert_true(all->halvings >= 2);
	rounds_hand_over(try);
	assert_in_range(all->refused_members, 500, 1500);
	assert_in_range(all->refused_packets, 3000, 9000);		/* 3 rounds of 2,000 */
	assert_in_range(track_burst(&suggest.start[0], 0), 2000, 6000); /* 4,000 pass */
	end(NULL);
}

TEST(test_read_of_a_frame)
{
	static const uint8_t bytes[] = {ETH(0x0800), IPV4(17), UDP};
	struct suggest_packet packet = {0};

	assert_true(suggest_read(bytes, sizeof(bytes), &packet));
	assert_true(packet.ipv4);
	assert_int_equal(packet.facts.port, 5353);
	assert_true(suggest_read(bytes, 36, &packet));
	assert_true(packet.facts.facts & SL_FACT_UNREAD);
	assert_false(suggest_read(bytes, 20, &packet));
}

TESTS(NULL, NULL)
