// SPDX-License-Identifier: GPL-2.0
#include "limiters.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

void limiters_ask(const struct demand *demand)
{
	setenv("RATE", demand->rate, true);
	setenv("BURST", demand->burst, true);
	setenv("SOURCES", demand->sources, true);
	setenv("BUCKETS", demand->buckets, true);
}

/* --- Sluice. If this program is killed, scripts/bench removes its gate ----------------------- */

#define SLUICE "build/sluice -g " LIMITER_GATE " "
#define SIZE   " sources $SOURCES"
#define LIMIT  SLUICE "set default rate $RATE burst $BURST"
#define BUDGET SLUICE "newcomers default rate 10kpps"
#define DETACH SLUICE "detach all"

static const char sluice_xdp[] = SLUICE "attach in0 in1 hook xdp mode native" SIZE " && " LIMIT;
static const char sluice_xdp_budget[] =
	SLUICE "attach in0 in1 hook xdp mode native" SIZE " && " LIMIT " && " BUDGET;
static const char sluice_tc[] = SLUICE "attach in0 in1 hook ingress" SIZE " && " LIMIT;

/*
 * Prints the number of judged packets. The first two lines of `stats` are the passed and the
 * dropped packets.
 */
static const char sluice_seen[] =
	SLUICE "stats | awk '$1 == \"passed\" {n = $2} $1 == \"dropped\" {print n + $2; exit}'";

/* --- nftables -------------------------------------------------------------------------------- */

/* Prints the number from `nft reset counter`. `nft list` would read all elements of all sets. */
#define NFT_PACKETS " | sed -n 's/.*packets \\([0-9]*\\).*/\\1/p'"

static const char nft_setup[] =
	"nft -f - <<END\n"
	"table netdev bench {\n"
	"	counter seen { }\n"
	"	set sources {\n"
	"		type ipv4_addr; size $SOURCES\n"
	"		flags dynamic,timeout; timeout 1m\n"
	"	}\n"
	"	chain first {\n"
	"		type filter hook ingress devices = { in0, in1 } priority 0\n"
	"		counter name seen\n"
	"		update @sources { ip saddr limit rate over $RATE burst $BURST packets"
	" } drop\n"
	"	}\n"
	"}\n"
	"END";
static const char nft_seen[] = "nft reset counter netdev bench seen" NFT_PACKETS;

/* --- iptables -------------------------------------------------------------------------------- */

/*
 * The first rule counts all packets. hashlimit drops packets in front of the second rule if its
 * table is full.
 */
static const char iptables_setup[] =
	"iptables -w -t raw -A PREROUTING && iptables -w -t raw -A PREROUTING -m hashlimit"
	" --hashlimit-name bench --hashlimit-mode srcip --hashlimit-above $RATE"
	" --hashlimit-burst $BURST --hashlimit-htable-size $BUCKETS"
	" --hashlimit-htable-max $SOURCES --hashlimit-htable-expire 60000 -j DROP";
static const char iptables_seen[] =
	"iptables -w -t raw -L PREROUTING -v -x -n | awk 'NR == 3 {print $1}'";

/* Deletes table `raw`, because even an empty table would slow down the next limiter. */
static const char iptables_teardown[] =
	"iptables -w -t raw -F; nft delete table ip raw 2>/dev/null || true";

/* --- The end of all packets that pass -------------------------------------------------------- */

const char end_setup[] = "nft -f - <<'END'\n"
			 "table ip bench-end {\n"
			 "	counter passed { }\n"
			 "	chain end {\n"
			 "		type filter hook prerouting priority -290\n"
			 "		counter name passed drop\n"
			 "	}\n"
			 "}\n"
			 "END";
const char end_take[] = "nft reset counter ip bench-end passed" NFT_PACKETS;
const char end_teardown[] = "nft delete table ip bench-end";

/*
 * All limiters. A veth device receives redirected frames only if it has an XDP program, so limiters
 * without an XDP program run with bench_empty.
 */
const struct limiter limiters[LIMITERS] = {
	[LIMITER_DROP] = {"xdp_drop", "bench_drop", NULL, NULL, NULL},
	[LIMITER_NONE] = {"no_limiter", "bench_empty", "nft list tables", NULL, NULL},
	[LIMITER_SLUICE] = {"sluice", NULL, sluice_xdp, sluice_seen, DETACH},
	[LIMITER_SLUICE_BUDGET] = {"sluice_budget", NULL, sluice_xdp_budget, sluice_seen, DETACH},
	[LIMITER_SLUICE_TC] = {"sluice_tc", "bench_empty", sluice_tc, sluice_seen, DETACH},
	[LIMITER_NFT] = {"nft", "bench_empty", nft_setup, nft_seen,
			 "nft delete table netdev bench"},
	[LIMITER_IPTABLES] = {"iptables", "bench_empty", iptables_setup, iptables_seen,
			      iptables_teardown},
};
