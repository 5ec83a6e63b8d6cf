#include "weir/net/tls_identity.hpp"

#include "tls.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace weir::net {

namespace {

struct Freed {
  void operator()(BIO* bio) const { ::BIO_free(bio); }
  void operator()(X509* certificate) const { ::X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { ::EVP_PKEY_free(key); }
};
using File = std::unique_ptr<BIO, Freed>;
using Certificate = std::unique_ptr<X509, Freed>;
using Key = std::unique_ptr<EVP_PKEY, Freed>;

Error wrong(std::string_view setting, const std::string& path, std::string_view how) {
  return Error{Errc::invalid, "bad_certificate", fmt::format("{} {} {}", setting, path, how), {{"field", setting}}};
}

std::string openssl_says() {
  const char* text = ::ERR_reason_error_string(::ERR_peek_last_error());
  return text != nullptr ? text : "OpenSSL gives no reason";
}

Result<File> open(std::string_view setting, const std::string& path) {
  ::ERR_clear_error();
  errno = 0;
  File file(::BIO_new_file(path.c_str(), "re"));
  if (!file) return wrong(setting, path, fmt::format("cannot be read: {}", std::strerror(errno)));
  return file;
}

// Nobody is there who could be asked for a password.
int no_password(char*, int, int, void* asked) {
  if (asked != nullptr) *static_cast<bool*>(asked) = true;
  return -1;
}

Result<Key> read_key(const std::string& path) {
  TRY(file, open("tls_key_file", path));
  bool asked = false;
  Key key(::PEM_read_bio_PrivateKey(file.get(), nullptr, no_password, &asked));
  if (asked) return wrong("tls_key_file", path, "is locked with a password: give the key without one");
  if (!key) return wrong("tls_key_file", path, "holds no private key in PEM form");
  return key;
}

WallTime end_of(const X509* certificate) {
  std::tm parts{};
  if (::ASN1_TIME_to_tm(::X509_get0_notAfter(certificate), &parts) != 1) return WallTime::max();
  return WallTime(std::chrono::seconds(::timegm(&parts)));
}

// A client that offers protocols, but not this one, would not understand the answers.
int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* size, const unsigned char* offered,
                    unsigned int offered_size, void*) {
  unsigned char* found = nullptr;
  if (::SSL_select_next_proto(&found, size, kAlpn, sizeof kAlpn - 1, offered, offered_size) != OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

TlsIdentity::TlsIdentity() : context_(::SSL_CTX_new(::TLS_server_method())) {
  WEIR_ASSERT(context_ != nullptr);
  ::SSL_CTX_set_min_proto_version(context_, TLS1_2_VERSION);
  ::SSL_CTX_set_options(context_, SSL_OP_NO_RENEGOTIATION);
  ::SSL_CTX_set_mode(context_, SSL_MODE_RELEASE_BUFFERS);          // a silent connection keeps little memory
  ::SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_OFF);  // clients keep tickets instead
  ::SSL_CTX_set_alpn_select_cb(context_, choose_protocol, nullptr);
}

TlsIdentity::~TlsIdentity() { ::SSL_CTX_free(context_); }

Result<std::shared_ptr<const TlsIdentity>> TlsIdentity::load(const std::string& certificate_file,
                                                             const std::string& key_file) {
  constexpr std::string_view kFile = "tls_certificate_file";
  std::shared_ptr<TlsIdentity> made(new TlsIdentity());
  TRY(file, open(kFile, certificate_file));
  Certificate own(::PEM_read_bio_X509_AUX(file.get(), nullptr, no_password, nullptr));
  if (!own) return wrong(kFile, certificate_file, "holds no certificate in PEM form");
  if (::SSL_CTX_use_certificate(made->context_, own.get()) != 1)
    return wrong(kFile, certificate_file, fmt::format("holds a certificate that cannot be used: {}", openssl_says()));
  made->ends_ = end_of(own.get());
  for (;;) {
    Certificate above(::PEM_read_bio_X509(file.get(), nullptr, no_password, nullptr));
    if (!above) break;
    made->ends_ = std::min(made->ends_, end_of(above.get()));
    if (::SSL_CTX_add1_chain_cert(made->context_, above.get()) != 1)
      return wrong(kFile, certificate_file, fmt::format("holds a chain that cannot be used: {}", openssl_says()));
  }
  if (ERR_GET_REASON(::ERR_peek_last_error()) != PEM_R_NO_START_LINE)
    return wrong(kFile, certificate_file, fmt::format("holds a chain that is damaged: {}", openssl_says()));
  TRY(key, read_key(key_file));
  ::ERR_clear_error();
  if (::X509_check_private_key(own.get(), key.get()) != 1)
    return wrong("tls_key_file", key_file,
                 fmt::format("does not belong to the first certificate in tls_certificate_file {}, which must be the "
                             "server's own",
                             certificate_file));
  if (::SSL_CTX_use_PrivateKey(made->context_, key.get()) != 1)
    return wrong("tls_key_file", key_file, fmt::format("holds a key that cannot be used: {}", openssl_says()));
  return std::shared_ptr<const TlsIdentity>(std::move(made));
}

}  // namespace weir::net
