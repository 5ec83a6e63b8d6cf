#include "certificate.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

namespace weir::camsim {

namespace {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};

constexpr long kDays = 30 * 24 * 3600;

}  // namespace

Result<std::string> make_certificate(const std::string& common_name) {
  const Error failed{Errc::internal, "no_certificate", "OpenSSL could not make a certificate"};
  std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>> key(EVP_EC_gen("P-256"));
  std::unique_ptr<X509, Freed<X509_free>> certificate(X509_new());
  std::unique_ptr<BIO, Freed<BIO_free_all>> out(BIO_new(BIO_s_mem()));
  if (!key || !certificate || !out) return failed;

  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kDays);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(common_name.c_str()), -1,
                             -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  if (X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0 ||
      PEM_write_bio_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 0 ||
      PEM_write_bio_X509(out.get(), certificate.get()) == 0)
    return failed;
  char* text = nullptr;
  long bytes = BIO_get_mem_data(out.get(), &text);
  return std::string(text, static_cast<size_t>(bytes));
}

}  // namespace weir::camsim
