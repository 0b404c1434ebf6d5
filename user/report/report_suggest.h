/* SPDX-License-Identifier: GPL-2.0 */
/* Report: prints proposed limits, as a rules file with comments or as JSON. */
#ifndef SLUICE_REPORT_SUGGEST_H
#define SLUICE_REPORT_SUGGEST_H

#include "suggest/from_gate.h"
#include "suggest/suggest.h"

/* Prints proposals from packets. capture: name of the capture as the user typed it. */
void report_suggest(const struct suggest *suggest, const char *capture);

/* Prints proposals from the counters of a gate. */
void report_suggest_gate(const struct gate_proposals *proposals,
			 const struct suggest_settings *settings, const char *gate);

/*
 * Prints a limit as YAML. is_comment: print it as a YAML comment, because the policy already has
 * the maximum number of limits. budget: print only rate and burst, because the limit is a budget
 * for new sources.
 */
void suggest_limit_print(const struct limit *limit, bool is_comment, bool budget);

#endif
