// SPDX-License-Identifier: GPL-2.0
/*
 * Serves by HTTP what the reading commands print. This thread accepts connections, and closes slow
 * connections. A second thread answers requests (serve/http.h). A third thread reads gates
 * (serve/documents.h). The process has no capabilities, and opens gates only to read them.
 */
#include <errno.h>
#include <grp.h>
#include <malloc.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <linux/capability.h>
#include <systemd/sd-daemon.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "gate/pins.h"
#include "program/program.h"
#include "report/command_serve.h"
#include "rules/value.h"
#include "serve/documents.h"
#include "serve/http.h"
#include "serve/listen.h"

#define TOKEN_LEAST   16
#define HANGS_NS      (60 * NS_PER_SEC) /* a document that takes longer stops the watchdog */
#define NOBODY	      65534
#define ACCEPTS_AGAIN 100 /* ms to wait after accept(2) failed, for example with EMFILE */

struct serve {
	struct serve_words words;
	struct file token, certificate, key, client_ca;
	struct listeners listeners;
	struct documents *documents;
	struct http *http;
	int signals, timer;
	uint64_t paused_until; /* uptime in ns at which the process accepts connections again */
	bool ends;
};

/* --- Files ---------------------------------------------------------------------------------- */

/* Reads a file that no other user may read. */
static int secret_read(const char *path, struct file *ret)
{
	bool exists = false;
	int err = path ? file_read_own(path, ret, &exists) : 0;

	if (err || !path)
		return err;
	if (!exists)
		return error_add(ENOENT, "no-file", path, "there is no such file");
	if (ret->mode & (ret->owner ? 0077 : 0037))
		return error_add(EPERM, "not-private", path,
				 "mode %04o lets others read it; use 'chmod %s %s'", ret->mode,
				 ret->owner ? "600" : "640", word_typed(path));
	return 0;
}

static int files_read(struct serve *serve)
{
	const struct serve_words *words = &serve->words;
	int err;

	if (!words->certificate != !words->key)
		return error_misuse("no-key", words->key ? "--tls-key" : "--tls-cert",
				    "it needs %s", words->key ? "--tls-cert" : "--tls-key");
	if (words->client_ca && !words->certificate)
		return error_misuse("no-tls", "--client-ca", "it needs TLS; add --tls-cert");
	err = secret_read(words->token_file, &serve->token) ?: secret_read(words->key, &serve->key);
	if (!err && words->certificate)
		err = file_read(words->certificate, &serve->certificate);
	if (!err && words->client_ca)
		err = file_read(words->client_ca, &serve->client_ca);
	if (err || !words->token_file)
		return err;
	serve->token.text[strcspn(serve->token.text, "\r\n")] = '\0';
	if (strlen(serve->token.text) < TOKEN_LEAST)
		return error_add(EINVAL, "short-token", words->token_file,
				 "its first line must have at least %d characters; 'openssl rand "
				 "-hex 32' prints a token",
				 TOKEN_LEAST);
	return 0;
}

static void secret_free(struct file *file)
{
	if (file->text)
		explicit_bzero(file->text, file->size);
	file_free(file);
}

/* --- Rights --------------------------------------------------------------------------------- */

/* Returns the group whose members may read the gates, or 0 if only their owner may. */
static gid_t readers_group(void)
{
	struct stat st;

	if (stat(BPFFS "/" PINS_ROOT, &st) || !(st.st_mode & S_IXGRP))
		return 0;
	return st.st_gid;
}

/*
 * Drops all capabilities. If the process runs as root, changes to user nobody (65534) and to the
 * group that may read the gates. If there is no such group, remains root, so that it can open files
 * that root owns.
 */
static int rights_drop(gid_t group)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};
	int failed = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);

	if (!failed && !geteuid() && group)
		failed = setgroups(0, NULL) || setresgid(group, group, group) ||
			 setresuid(NOBODY, NOBODY, NOBODY);
	failed = failed || syscall(SYS_capset, &header, none);
	return failed ? error_add(errno, "rights", NULL, "cannot drop its rights: %s",
				  strerror(errno))
		      : 0;
}

/* --- The loop ------------------------------------------------------------------------------- */

static void second_pass(struct serve *serve)
{
	http_expire(serve->http);
	documents_expire(serve->documents);
	if (documents_busy_ns(serve->documents) < HANGS_NS)
		sd_notify(0, "WATCHDOG=1");
}

/* Accepts the connections that wait at a listening socket, at most 16. */
static void accept_some(struct serve *serve, int listener)
{
	int err = 0;

	for (int i = 0; !err && i < 16; i++)
		err = http_accept(serve->http, listener);
	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -ENOBUFS)
		serve->paused_until = uptime_ns() + ACCEPTS_AGAIN * NS_PER_MS;
}

static int events_wait(struct serve *serve)
{
	struct pollfd polled[2 + LISTENERS_MAX] = {
		{.fd = serve->signals, .events = POLLIN},
		{.fd = serve->timer, .events = POLLIN},
	};
	bool is_paused = uptime_ns() < serve->paused_until;
	uint64_t expired;

	for (unsigned int i = 0; i < serve->listeners.count; i++)
		polled[2 + i] = (struct pollfd){.fd = is_paused ? -1 : serve->listeners.fd[i],
						.events = POLLIN};
	if (poll(polled, 2 + serve->listeners.count, is_paused ? ACCEPTS_AGAIN : -1) < 0) {
		if (errno == EINTR)
			return 0;
		return error_add(errno, "no-events", NULL, "cannot wait for events: %s",
				 strerror(errno));
	}
	serve->ends = polled[0].revents;
	if (polled[1].revents && read(serve->timer, &expired, sizeof(expired)) > 0)
		second_pass(serve);
	for (unsigned int i = 0; i < serve->listeners.count; i++)
		if (polled[2 + i].revents)
			accept_some(serve, serve->listeners.fd[i]);
	return 0;
}

static int fds_open(struct serve *serve)
{
	const struct itimerspec every = {{.tv_sec = 1}, {.tv_sec = 1}};
	sigset_t signals;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	if (!sigprocmask(SIG_BLOCK, &signals, NULL))
		serve->signals = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	serve->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (serve->signals < 0 || serve->timer < 0 ||
	    timerfd_settime(serve->timer, 0, &every, NULL))
		return error_add(errno, "no-events", NULL, "cannot wait for events: %s",
				 strerror(errno));
	return 0;
}

/* --- The command ---------------------------------------------------------------------------- */

static int serve_open(struct serve *serve, const char *gate)
{
	const struct serve_words *words = &serve->words;
	const struct serve_scope scope = {gate, words->metrics_sources};
	const struct http_secrets secrets = {
		.token = words->token_file ? serve->token.text : NULL,
		.certificate = serve->certificate.text,
		.key = serve->key.text,
		.client_ca = serve->client_ca.text,
	};
	gid_t group = readers_group();
	bool guarded = secrets.token || secrets.client_ca;

	return listeners_open(words->listen, words->socket, guarded, group, &serve->listeners)
		       ?: rights_drop(group) ?: fds_open(serve)
		       ?: documents_open(&scope, &serve->documents)
		       ?: http_open(serve->documents, &secrets, &serve->http);
}

static void serve_close(struct serve *serve)
{
	sd_notify(0, "STOPPING=1");
	listeners_close(&serve->listeners);
	if (serve->documents)
		documents_stop(serve->documents);
	http_close(serve->http);
	documents_close(serve->documents);
	close_fd(&serve->signals);
	close_fd(&serve->timer);
	secret_free(&serve->token);
	secret_free(&serve->key);
	file_free(&serve->certificate);
	file_free(&serve->client_ca);
}

/* Informs the user of the addresses, unless the sockets are UNIX sockets. */
static void listening_report(const struct serve *serve)
{
	for (unsigned int i = 0; i < serve->listeners.count; i++) {
		struct sockaddr_storage address = {0};
		socklen_t length = sizeof(address);
		char host[INET6_ADDRSTRLEN], port[8];
		bool is_ipv6;

		if (getsockname(serve->listeners.fd[i], (struct sockaddr *)&address, &length) ||
		    address.ss_family == AF_UNIX ||
		    getnameinfo((struct sockaddr *)&address, length, host, sizeof(host), port,
				sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
			continue;
		is_ipv6 = address.ss_family == AF_INET6;
		error_inform("listening", NULL, "listening on http%s://%s%s%s:%s/",
			     serve->words.certificate ? "s" : "", is_ipv6 ? "[" : "", host,
			     is_ipv6 ? "]" : "", port);
	}
}

/* Serves until SIGTERM, SIGINT or SIGHUP. */
static int serve_run(const struct context *context, const void *data)
{
	_cleanup_(serve_close) struct serve serve = {
		.words = *(const struct serve_words *)data,
		.signals = -1,
		.timer = -1,
	};
	int err;

	/* With this threshold, free() returns the memory of large tables to the kernel at once. */
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	err = files_read(&serve) ?: serve_open(&serve, context->gate_given ? context->gate : NULL);

	if (!err) {
		listening_report(&serve);
		sd_notify(0, "READY=1\nSTATUS=serving");
	}
	while (!err && !serve.ends) {
		error_flush();
		err = events_wait(&serve);
	}
	return err;
}

int main(int argc, char **argv)
{
	static struct command serve;
	static const struct command *const commands[] = {&serve};
	static const struct program program = {
		.name = "sluice-serve", .commands = commands, .count = 1};

	serve = command_serve;
	serve.run = serve_run;
	serve.package = NULL;
	return program_main(&program, argc, argv);
}
