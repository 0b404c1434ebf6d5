/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Serve: the metrics of command `export` and of this process, in the formats of Prometheus and
 * OpenMetrics.
 */
#ifndef SLUICE_METRICS_H
#define SLUICE_METRICS_H

#include <stdio.h>

#include "serve/answer.h"

#define METRICS_TEXT "text/plain; version=0.0.4; charset=utf-8"
#define METRICS_OPEN "application/openmetrics-text; version=1.0.0; charset=utf-8"

/*
 * Prints the metrics. open: use OpenMetrics, otherwise the text format of Prometheus 0.0.4. The
 * writer (program/writer.h) prints to `out` before and after the call. Returns 0 or a negative
 * errno.
 */
int metrics_print(const struct serve_scope *scope, bool open, FILE *out);

/* Converts metrics from the text format of Prometheus to OpenMetrics. */
void metrics_convert(const char *text, FILE *out);

#endif
