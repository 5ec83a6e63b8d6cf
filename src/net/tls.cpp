#include "tls.hpp"

#include "weir/net/tls_identity.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <array>

namespace weir::net {

namespace {

constexpr size_t kRecordBytes = 16 << 10;

Error failure(std::string reason, std::string message) {
  return Error{Errc::unavailable, std::move(reason), std::move(message)};
}

bool is_address(const std::string& host) {
  boost::system::error_code failed;
  boost::asio::ip::make_address(host, failed);
  return !failed;
}

Error certificate_problem(long verdict, const std::string& host) {
  switch (verdict) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return failure("tls_wrong_name",
                     fmt::format("its certificate is not for {}: ask it by a name that the certificate "
                                 "has, or have one made for this name",
                                 host));
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return failure("tls_expired", "its certificate has expired: renew it there, or set this machine's clock right");
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return failure("tls_not_yet_valid", "its certificate is not valid yet: is this machine's clock right?");
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return failure("tls_unknown_authority",
                     "its certificate is from an authority that this machine does not know: "
                     "name the file of a private one with control_plane_ca_file");
    default:
      return failure("tls_bad_certificate",
                     fmt::format("its certificate is refused: {}", X509_verify_cert_error_string(verdict)));
  }
}

}  // namespace

TlsTrust::TlsTrust() : context_(::SSL_CTX_new(::TLS_client_method())) {
  WEIR_ASSERT(context_ != nullptr);
  ::SSL_CTX_set_min_proto_version(context_, TLS1_2_VERSION);
  ::SSL_CTX_set_options(context_, SSL_OP_NO_RENEGOTIATION);
  ::SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
  ::SSL_CTX_set_default_verify_paths(context_);
  ::SSL_CTX_set_alpn_protos(context_, kAlpn, sizeof kAlpn - 1);
}

TlsTrust::~TlsTrust() { ::SSL_CTX_free(context_); }

Result<std::shared_ptr<const TlsTrust>> TlsTrust::load(const std::string& ca_file) {
  std::shared_ptr<TlsTrust> made(new TlsTrust());
  ::ERR_clear_error();
  if (!ca_file.empty() && ::SSL_CTX_load_verify_file(made->context_, ca_file.c_str()) != 1)
    return Error{Errc::invalid, "bad_ca_file",
                 fmt::format("control_plane_ca_file {} holds no certificate in PEM form, or cannot be read", ca_file)};
  return std::shared_ptr<const TlsTrust>(std::move(made));
}

namespace {
ssl_st* new_session(ssl_ctx_st* context) {
  ssl_st* made = ::SSL_new(context);
  WEIR_ASSERT(made != nullptr);
  ::SSL_set_bio(made, ::BIO_new(::BIO_s_mem()), ::BIO_new(::BIO_s_mem()));
  return made;
}
}  // namespace

TlsSession::TlsSession(const TlsIdentity& identity) : ssl_(new_session(identity.context_)) {
  ::SSL_set_accept_state(ssl_);
}

TlsSession::TlsSession(const TlsTrust& trust, std::string host)
    : host_(std::move(host)), ssl_(new_session(trust.context_)) {
  ::SSL_set_connect_state(ssl_);
  // A name that cannot be checked must not be taken for one that was.
  if (is_address(host_)) {
    std::string plain = host_.substr(0, host_.find('%'));  // an interface is no part of the address
    WEIR_ASSERT(::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl_), plain.c_str()) == 1);
    return;
  }
  ::SSL_set_hostflags(ssl_, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  WEIR_ASSERT(::SSL_set1_host(ssl_, host_.c_str()) == 1);
  ::SSL_set_tlsext_host_name(ssl_, host_.c_str());
}

TlsSession::~TlsSession() { ::SSL_free(ssl_); }

Error TlsSession::problem() const {
  if (long verdict = ::SSL_get_verify_result(ssl_); verdict != X509_V_OK) return certificate_problem(verdict, host_);
  unsigned long code = ::ERR_peek_last_error();
  int reason = ERR_GET_REASON(code);
  if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST || reason == SSL_R_HTTPS_PROXY_REQUEST ||
      reason == SSL_R_PACKET_LENGTH_TOO_LONG)
    return failure("tls_not_spoken", ::SSL_is_server(ssl_) == 1
                                         ? "this port speaks TLS: its address begins with https://"
                                         : "it does not speak TLS there: is http:// or another port meant?");
  const char* text = ::ERR_reason_error_string(code);
  return failure("tls_failed", fmt::format("no encrypted connection: {}", text != nullptr ? text : "protocol error"));
}

Status TlsSession::shake_hands() {
  ::ERR_clear_error();
  int done = ::SSL_do_handshake(ssl_);
  if (done == 1 || ::SSL_get_error(ssl_, done) == SSL_ERROR_WANT_READ) return ok();
  return problem();
}

bool TlsSession::established() const { return ::SSL_is_init_finished(ssl_) == 1; }

void TlsSession::feed(std::string_view received) {
  ::BIO_write(::SSL_get_rbio(ssl_), received.data(), static_cast<int>(received.size()));
}

size_t TlsSession::output_bytes() const { return ::BIO_ctrl_pending(::SSL_get_wbio(ssl_)); }

std::string TlsSession::take_output() {
  std::string text(output_bytes(), '\0');
  if (!text.empty()) ::BIO_read(::SSL_get_wbio(ssl_), text.data(), static_cast<int>(text.size()));
  return text;
}

// Record by record, because the memory between the two keeps the size that it once had.
Status TlsSession::encrypt(std::string_view text, std::string& to) {
  ::ERR_clear_error();
  while (!text.empty()) {
    size_t put = 0;
    if (::SSL_write_ex(ssl_, text.data(), std::min(text.size(), kRecordBytes), &put) != 1) return problem();
    text.remove_prefix(put);
    to += take_output();
  }
  return ok();
}

std::string TlsSession::goodbye() {
  ::ERR_clear_error();
  if (established()) ::SSL_shutdown(ssl_);
  return take_output();
}

Status TlsSession::decrypt(std::string& to, bool& closed) {
  ::ERR_clear_error();
  std::array<char, 16 << 10> block;
  for (;;) {
    size_t got = 0;
    int read = ::SSL_read_ex(ssl_, block.data(), block.size(), &got);
    to.append(block.data(), got);
    if (read == 1) continue;
    int why = ::SSL_get_error(ssl_, read);
    closed = why == SSL_ERROR_ZERO_RETURN;
    if (closed || why == SSL_ERROR_WANT_READ) return ok();
    return problem();
  }
}

}  // namespace weir::net
