// SPDX-License-Identifier: GPL-2.0
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "program/writer.h"
#include "report/report_suggest.h"
#include "rules/limit_words.h"

/* Returns the time at which a policy began to count, as text. */
static const char *since_format(const struct gate_proposal *proposal, char text[MOMENT_TEXT])
{
	return moment_format(time(NULL) - (time_t)(proposal->span_ns / NS_PER_SEC), text);
}

/* Returns the part of the policy's packets that the source-seconds contain, in per cent. */
static unsigned int covered(const struct gate_proposal *proposal)
{
	/* a change of the rules during a second can move its packets to another policy */
	return proposal->packets >= proposal->judged ? 100
						     : proposal->packets * 100 / proposal->judged;
}

static void policy_print(const struct gate_proposal *proposal,
			 const struct suggest_settings *settings)
{
	char since[MOMENT_TEXT];

	if (proposal->refusal != SUGGEST_PROPOSED) {
		print_text("  # %s: too little traffic: %" PRIu64 " packets in %" PRIu64
			   " source-seconds since %s.\n",
			   proposal->policy, proposal->packets, proposal->seconds,
			   since_format(proposal, since));
		return;
	}
	print_text("  - prefix: \"%s\"\n    limits:\n", proposal->policy);
	print_text("      # Since %s: %" PRIu64 " source-seconds with %" PRIu64 " packets,\n"
		   "      # %u %% of the packets that the policy judged.\n",
		   since_format(proposal, since), proposal->seconds, proposal->packets,
		   covered(proposal));
	print_text("      # Packets in a source-second, at most: p50 %" PRIu64 ", p99 %" PRIu64
		   ", p99.9 %" PRIu64 ", max %" PRIu64 ".\n",
		   proposal->p50, proposal->p99, proposal->p999, proposal->max);
	print_text("      # The rate is enough for %g %% of the source-seconds, plus %u %%.\n"
		   "      # At most %" PRIu64 " of %" PRIu64 " source-seconds exceed this rate.\n",
		   settings->quantile / 1000.0, settings->headroom, proposal->exceeded,
		   proposal->seconds);
	suggest_limit_print(&proposal->limit, false, false);
}

static void policy_json(const struct gate_proposal *proposal)
{
	const struct sl_limit_spec *spec = &proposal->limit.spec;
	bool is_proposed = proposal->refusal == SUGGEST_PROPOSED;
	char text[MOMENT_TEXT];

	print_object(NULL);
	print_string("policy", NULL, proposal->policy);
	print_string("since", NULL, since_format(proposal, text));
	print_number("source_seconds", NULL, proposal->seconds);
	print_number("packets", NULL, proposal->packets);
	print_number("covered_percent", NULL, covered(proposal));
	print_number("p50_packets", NULL, proposal->p50);
	print_number("p99_packets", NULL, proposal->p99);
	print_number("p999_packets", NULL, proposal->p999);
	print_number("max_packets", NULL, proposal->max);
	print_string("refused_because", NULL, is_proposed ? NULL : "too little traffic");
	print_known("pps", NULL, is_proposed, spec->rate);
	print_known("burst", NULL, is_proposed, spec->burst);
	print_known("exceeded_source_seconds", NULL, is_proposed, proposal->exceeded);
	print_end();
}

static void gate_json(const struct gate_proposals *proposals,
		      const struct suggest_settings *settings, const char *gate)
{
	print_object(NULL);
	print_string("source", NULL, "gate");
	print_string("gate", NULL, gate);
	print_real("quantile", settings->quantile / 1000.0);
	print_number("headroom", NULL, settings->headroom);
	print_array("policies");
	for (unsigned int i = 0; i < proposals->count; i++)
		policy_json(&proposals->items[i]);
	print_end();
	print_end();
}

void report_suggest_gate(const struct gate_proposals *proposals,
			 const struct suggest_settings *settings, const char *gate)
{
	const char *option = gate_option(gate);

	if (print_is_json()) {
		gate_json(proposals, settings, gate);
		return;
	}
	print_text("# Limits that 'sluice suggest' proposes from the counters of gate '%s'.\n"
		   "# They observe: packets over a limit are counted and pass.\n",
		   name_shown(gate));
	print_text("# A source-second is a second in which a source sends packets through one CPU."
		   "\n# Its number of packets is rounded up to a power of 2.\n"
		   "# The times of packets within a second are unknown. So the burst is twice the\n"
		   "# rate, because all packets of two seconds may come at once.\n");
	print_text("# Also unknown: the classes of packets; the busiest sources, which\n"
		   "# 'sluice %stop' shows; packets of sources without a bucket; the sum of a\n"
		   "# source's packets over all CPUs.\n",
		   option);
	print_text("policies:\n");
	for (unsigned int i = 0; i < proposals->count; i++)
		policy_print(&proposals->items[i], settings);
	print_text("# Test it on a capture, compare it with the gate, and apply it:\n"
		   "#   sluice %1$ssuggest --from-gate | sluice replay OTHER.pcap -f -\n"
		   "#   sluice %1$ssuggest --from-gate | sluice %1$sdiff -\n"
		   "#   sluice %1$ssuggest --from-gate | sluice %1$sapply -\n"
		   "# 'sluice apply' replaces all rules of the gate.\n",
		   option);
}
