/* SPDX-License-Identifier: GPL-2.0 */
/* Report: the words of the command `serve`, which `sluice` documents and sluice-serve runs. */
#ifndef SLUICE_COMMAND_SERVE_H
#define SLUICE_COMMAND_SERVE_H

#include "program/program.h"

struct serve_words {
	const char *listen; /* addresses to listen on, separated by commas */
	const char *socket;
	const char *token_file;
	const char *certificate;
	const char *key;
	const char *client_ca;
	unsigned int metrics_sources;
};

#define SERVE_PORT 9740

/* Most sources in the metrics of `serve`, so that a scrape stays small. */
#define SERVE_METRICS_SOURCES 1000

/*
 * Describes the words of command `serve`. The program sluice-serve has the function that runs the
 * command.
 */
extern const struct command command_serve;

#endif
