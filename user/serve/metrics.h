/* SPDX-License-Identifier: GPL-2.0 */
/* Serve: the metrics of `export`, and of this process, in two text formats. */
#ifndef SLUICE_METRICS_H
#define SLUICE_METRICS_H

#include <stdio.h>

#include "serve/answer.h"

#define METRICS_TEXT "text/plain; version=0.0.4; charset=utf-8"
#define METRICS_OPEN "application/openmetrics-text; version=1.0.0; charset=utf-8"

/*
 * Prints the metrics. open: in the format OpenMetrics, otherwise in that of Prometheus 0.0.4. The
 * writer prints to `out` before and after the call.
 */
int metrics_print(const struct serve_scope *scope, bool open, FILE *out);

/* Converts metrics from Prometheus's format to OpenMetrics. */
void metrics_convert(const char *text, FILE *out);

#endif
