// SPDX-License-Identifier: GPL-2.0
#include "share/tls.h"

#include <errno.h>

#ifdef SL_STORE_TLS
#include <hiredis/hiredis_ssl.h> /* needs hiredis.h before it */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

struct ssl_ctx_st *tls_open(const char *ca_file)
{
	SSL_CTX *tls = SSL_CTX_new(TLS_client_method());

	if (tls && SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION) &&
	    SSL_CTX_load_verify_locations(tls, ca_file, NULL)) {
		SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
		return tls;
	}
	errno = tls ? EINVAL : ENOMEM;
	ERR_clear_error();
	SSL_CTX_free(tls);
	return NULL;
}

void tls_close(struct ssl_ctx_st *tls)
{
	SSL_CTX_free(tls);
}

/* Requires a certificate for this host: a DNS name, or an IP address. hiredis checks no host. */
static bool host_expect(SSL *ssl, const char *host)
{
	if (host_is_address(host))
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, host) && SSL_set_tlsext_host_name(ssl, host);
}

const char *tls_error(const struct connection *connection)
{
	long result = connection->ssl ? SSL_get_verify_result(connection->ssl) : X509_V_OK;

	if (result != X509_V_OK)
		return X509_verify_cert_error_string(result);
	return *connection->context->errstr ? connection->context->errstr : "out of memory";
}

const char *tls_begin(struct connection *connection)
{
	SSL *ssl = connection->ssl = SSL_new(connection->setup->tls); /* freed with the context */
	const char *error;

	if (ssl && host_expect(ssl, connection->at.host) &&
	    redisInitiateSSL(connection->context, ssl) == REDIS_OK)
		return NULL;
	error = tls_error(connection);
	connection->ssl = NULL;
	SSL_free(ssl);
	return error;
}

#else
struct ssl_ctx_st *tls_open(const char *ca_file)
{
	(void)ca_file;
	errno = EOPNOTSUPP;
	return NULL;
}

void tls_close(struct ssl_ctx_st *tls)
{
	(void)tls;
}

const char *tls_begin(struct connection *connection)
{
	(void)connection;
	return "none";
}

const char *tls_error(const struct connection *connection)
{
	return connection->context->errstr;
}
#endif
