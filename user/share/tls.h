/* SPDX-License-Identifier: GPL-2.0 */
/* Share: TLS on a connection of hiredis. A build without hiredis_ssl has none. */
#ifndef SLUICE_SHARE_TLS_H
#define SLUICE_SHARE_TLS_H

#include "share/connection.h"

/* ca_file: the authority of certificates. NULL: errno is EOPNOTSUPP without TLS, or EINVAL. */
struct ssl_ctx_st *tls_open(const char *ca_file);
void tls_close(struct ssl_ctx_st *tls);

/*
 * Begins the handshake, which reads and writes then continue. The certificate must be for the host
 * of the connection. Returns NULL, or what failed.
 */
const char *tls_begin(struct connection *connection);

/* Returns what is wrong with the certificate, as "hostname mismatch", or what hiredis reports. */
const char *tls_error(const struct connection *connection);

#endif
