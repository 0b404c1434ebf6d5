/* SPDX-License-Identifier: GPL-2.0 */
/* Share: TLS on a connection of hiredis. A build without hiredis_ssl has none. */
#ifndef SLUICE_SHARE_TLS_H
#define SLUICE_SHARE_TLS_H

#include <hiredis/hiredis.h>

struct tls;
struct ssl_st;

/*
 * ca_file: the authority of certificates. NULL: errno is EOPNOTSUPP without TLS, otherwise EINVAL.
 */
struct tls *tls_open(const char *ca_file);
void tls_close(struct tls *tls);

/*
 * Begins the handshake, which reads and writes then continue. The certificate must be for this
 * host. ret_ssl: freed with the context. Returns NULL, or what failed.
 */
const char *tls_begin(const struct tls *tls, redisContext *context, const char *host,
		      struct ssl_st **ret_ssl);

/* Returns what is wrong with the certificate, as "hostname mismatch", or what hiredis reports. */
const char *tls_error(const redisContext *context, const struct ssl_st *ssl);

#endif
