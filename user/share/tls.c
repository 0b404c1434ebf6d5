// SPDX-License-Identifier: GPL-2.0
#include "share/tls.h"

#include <errno.h>
#include <stdlib.h>

#ifdef SL_STORE_TLS
#include <hiredis/hiredis_ssl.h> /* needs hiredis.h before it */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "share/lookup.h"

/* hiredis checks the authority of a certificate, but not its host: so the SSL is made here. */
struct tls {
	SSL_CTX *context;
};

struct tls *tls_open(const char *ca_file)
{
	struct tls *tls = calloc(1, sizeof(*tls));

	if (!tls)
		return NULL;
	tls->context = SSL_CTX_new(TLS_client_method());
	if (tls->context && SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION) &&
	    SSL_CTX_load_verify_locations(tls->context, ca_file, NULL)) {
		SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
		return tls;
	}
	errno = tls->context ? EINVAL : ENOMEM;
	ERR_clear_error();
	SSL_CTX_free(tls->context);
	free(tls);
	return NULL;
}

void tls_close(struct tls *tls)
{
	if (tls)
		SSL_CTX_free(tls->context);
	free(tls);
}

/* Requires a certificate for this host: a DNS name, or an IP address. */
static bool host_expect(SSL *ssl, const char *host)
{
	if (host_is_address(host))
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, host) && SSL_set_tlsext_host_name(ssl, host);
}

const char *tls_error(const redisContext *context, const struct ssl_st *ssl)
{
	long result = ssl ? SSL_get_verify_result(ssl) : X509_V_OK;

	if (result != X509_V_OK)
		return X509_verify_cert_error_string(result);
	return *context->errstr ? context->errstr : "out of memory";
}

const char *tls_begin(const struct tls *tls, redisContext *context, const char *host,
		      struct ssl_st **ret_ssl)
{
	SSL *ssl = SSL_new(tls->context);
	const char *error;

	if (ssl && host_expect(ssl, host) && redisInitiateSSL(context, ssl) == REDIS_OK) {
		*ret_ssl = ssl;
		return NULL;
	}
	error = tls_error(context, ssl);
	SSL_free(ssl);
	return error;
}

#else
struct tls *tls_open(const char *ca_file)
{
	(void)ca_file;
	errno = EOPNOTSUPP;
	return NULL;
}

void tls_close(struct tls *tls)
{
	(void)tls;
}

const char *tls_begin(const struct tls *tls, redisContext *context, const char *host,
		      struct ssl_st **ret_ssl)
{
	(void)tls, (void)context, (void)host, (void)ret_ssl;
	return "none";
}

const char *tls_error(const redisContext *context, const struct ssl_st *ssl)
{
	(void)ssl;
	return context->errstr;
}
#endif
