// SPDX-License-Identifier: GPL-2.0
#include "report/command_serve.h"

static const struct value_type sources_number = VALUE_NUMBER(1, SERVE_METRICS_SOURCES, NULL);

static const struct word serve_words[] = {
	{"--listen", OPTION, VALUE_TEXT("ADDRESS"), offsetof(struct serve_words, listen),
	 "ADDRESS:PORT, or several separated by commas; default: 127.0.0.1:9740,[::1]:9740"},
	{"--socket", OPTION, VALUE_TEXT("PATH"), offsetof(struct serve_words, socket),
	 "listen on this UNIX socket instead, which the gates' group may use"},
	{"--token-file", OPTION, VALUE_TEXT("FILE"), offsetof(struct serve_words, token_file),
	 "clients need the token in its first line, at least 16 characters; mode 0600, or 0640\n"
	 "if it is root's"},
	{"--tls-cert", OPTION, VALUE_TEXT("FILE"), offsetof(struct serve_words, certificate),
	 "use TLS with this certificate"},
	{"--tls-key", OPTION, VALUE_TEXT("FILE"), offsetof(struct serve_words, key),
	 "the private key of the certificate; mode as of the token"},
	{"--client-ca", OPTION, VALUE_TEXT("FILE"), offsetof(struct serve_words, client_ca),
	 "clients need a certificate that this CA has signed"},
	{"--metrics-sources", OPTION, &sources_number,
	 offsetof(struct serve_words, metrics_sources),
	 "add the counters of the N busiest sources to /metrics, 1 to 1000"},
};

const struct command command_serve = {
	.name = "serve",
	.brief = "a page in the browser, metrics, and JSON, as a service",
	.details =
		"Serves what the reading commands print, by HTTP, to any number of clients: the\n"
		"page /, /metrics for Prometheus, /healthz, and JSON below /api/v1, which\n"
		"/openapi.json describes. It only reads. Without -g, it serves all gates. An\n"
		"address that other machines reach needs --token-file, or --tls-cert and "
		"--client-ca.",
	COMMAND_WORDS(serve_words, struct serve_words),
	.package = "sluice-serve",
};
