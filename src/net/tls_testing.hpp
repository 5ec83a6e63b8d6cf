// For the tests of TLS: an authority made on the spot, and a server of OpenSSL's that shows one of its certificates.
// The server runs in a thread of its own, one connection at a time.
#pragma once

#include "weir/base/result.hpp"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace weir::net::testing {

struct Certificate {
  X509* x509 = ::X509_new();
  EVP_PKEY* key = ::EVP_EC_gen("P-256");
  Certificate() = default;
  Certificate(const Certificate&) = delete;
  ~Certificate() {
    ::X509_free(x509);
    ::EVP_PKEY_free(key);
  }
  // Each replaces the file as a whole, as those who renew certificates do.
  void write(const std::string& path) const {
    replace(path, [this](FILE* file) { return ::PEM_write_X509(file, x509); });
  }
  void write_key(const std::string& path, const std::string& password = "") const {
    const EVP_CIPHER* lock = password.empty() ? nullptr : ::EVP_aes_128_cbc();
    replace(path, [&](FILE* file) {
      return ::PEM_write_PKCS8PrivateKey(file, key, lock, password.data(), static_cast<int>(password.size()), nullptr,
                                         nullptr);
    });
  }

 private:
  static void replace(const std::string& path, const std::function<int(FILE*)>& fill) {
    FILE* file = std::fopen((path + ".new").c_str(), "we");
    WEIR_ASSERT(file != nullptr && fill(file) == 1);
    std::fclose(file);
    WEIR_ASSERT(std::rename((path + ".new").c_str(), path.c_str()) == 0);
  }
};

class Authority {
 public:
  Authority() { fill(own_, "the test's authority", "critical,CA:TRUE", "", 3600); }
  // `names` as in "DNS:localhost" or "IP:127.0.0.1"; valid for so long from now on, or until so long ago.
  std::unique_ptr<Certificate> issue(const std::string& names, long seconds_left = 3600) const {
    auto made = std::make_unique<Certificate>();
    fill(*made, "server", "CA:FALSE", names, seconds_left);
    return made;
  }
  void write(const std::string& path) const { own_.write(path); }

 private:
  void fill(Certificate& made, const char* subject, const char* basic, const std::string& names, long left) const {
    static std::atomic<long> serial = 1;
    ::X509_set_version(made.x509, 2);
    ::ASN1_INTEGER_set(::X509_get_serialNumber(made.x509), serial++);
    ::X509_gmtime_adj(::X509_getm_notBefore(made.x509), -7200);
    ::X509_gmtime_adj(::X509_getm_notAfter(made.x509), left);
    ::X509_set_pubkey(made.x509, made.key);
    X509_NAME* name = ::X509_get_subject_name(made.x509);
    ::X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(subject), -1, -1, 0);
    ::X509_set_issuer_name(made.x509, ::X509_get_subject_name(own_.x509));
    // What strict clients want to find (RFC 5280).
    extend(made, NID_basic_constraints, basic);
    extend(made, NID_key_usage, &made == &own_ ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature");
    extend(made, NID_subject_key_identifier, "hash");
    extend(made, NID_authority_key_identifier, "keyid:always");
    if (!names.empty()) extend(made, NID_subject_alt_name, names.c_str());
    WEIR_ASSERT(::X509_sign(made.x509, own_.key, ::EVP_sha256()) > 0);
  }
  void extend(Certificate& made, int what, const char* value) const {
    X509V3_CTX context;
    ::X509V3_set_ctx(&context, own_.x509, made.x509, nullptr, nullptr, 0);
    X509_EXTENSION* extension = ::X509V3_EXT_conf_nid(nullptr, &context, what, value);
    WEIR_ASSERT(extension != nullptr);
    ::X509_add_ext(made.x509, extension, -1);
    ::X509_EXTENSION_free(extension);
  }
  Certificate own_;
};

// Accepts connections on loopback and lets `serve` speak on each until the test is over.
class Listener {
 public:
  explicit Listener(std::function<void(int)> serve) : serve_(std::move(serve)) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    WEIR_ASSERT(::bind(fd_, reinterpret_cast<sockaddr*>(&at), length) == 0 && ::listen(fd_, 8) == 0);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &length);
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this] { accept_all(); });
  }
  ~Listener() {
    over_ = true;
    ::shutdown(fd_, SHUT_RDWR);
    {
      std::lock_guard guard(mutex_);
      if (open_ >= 0) ::shutdown(open_, SHUT_RDWR);
    }
    thread_.join();
    ::close(fd_);
  }
  int port() const { return port_; }

 private:
  void accept_all() {
    while (!over_) {
      int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      timeval patience{5, 0};
      ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
      set_open(fd);
      if (!over_) serve_(fd);
      set_open(-1);
      ::close(fd);
    }
  }
  void set_open(int fd) {
    std::lock_guard guard(mutex_);
    open_ = fd;
  }
  const std::function<void(int)> serve_;
  std::atomic<bool> over_ = false;
  std::mutex mutex_;
  int open_ = -1;
  int fd_ = -1, port_ = 0;
  std::thread thread_;
};

class TlsServer {
 public:
  struct Ways {
    int newest = TLS1_3_VERSION;
    bool say_goodbye = true;  // that nothing follows, before the connection is closed
    std::string answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    bool then_close = false;
  };
  explicit TlsServer(const Certificate& shown) : TlsServer(shown, Ways()) {}
  TlsServer(const Certificate& shown, Ways ways)
      : ways_(std::move(ways)), context_(make_context(shown, ways_.newest)), listener_([this](int fd) { serve(fd); }) {}
  int port() const { return listener_.port(); }
  int handshakes() const { return handshakes_; }
  // What was asked, each up to the end of its head and what came with it.
  std::vector<std::string> requests() const {
    std::lock_guard guard(mutex_);
    return requests_;
  }
  std::string asked_for() const {
    std::lock_guard guard(mutex_);
    return asked_for_;
  }

 private:
  struct Freed {
    void operator()(SSL* ssl) const { ::SSL_free(ssl); }
    void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
  };
  static SSL_CTX* make_context(const Certificate& shown, int newest) {
    SSL_CTX* made = ::SSL_CTX_new(::TLS_server_method());
    ::SSL_CTX_use_certificate(made, shown.x509);
    ::SSL_CTX_use_PrivateKey(made, shown.key);
    ::SSL_CTX_set_cipher_list(made, "DEFAULT@SECLEVEL=0");
    ::SSL_CTX_set_min_proto_version(made, TLS1_VERSION);
    ::SSL_CTX_set_max_proto_version(made, newest);
    return made;
  }
  void serve(int fd) {
    std::unique_ptr<SSL, Freed> ssl(::SSL_new(context_.get()));
    ::SSL_set_fd(ssl.get(), fd);
    if (::SSL_accept(ssl.get()) != 1) return;
    ++handshakes_;
    {
      std::lock_guard guard(mutex_);
      const char* name = ::SSL_get_servername(ssl.get(), TLSEXT_NAMETYPE_host_name);
      asked_for_ = name != nullptr ? name : "";
    }
    while (read_request(ssl.get())) {
      ::SSL_write(ssl.get(), ways_.answer.data(), static_cast<int>(ways_.answer.size()));
      if (ways_.then_close) break;
    }
    if (ways_.say_goodbye) ::SSL_shutdown(ssl.get());
  }
  bool read_request(SSL* ssl) {
    std::string got;
    char block[16384];
    auto whole = [&] {
      size_t head = got.find("\r\n\r\n");
      if (head == std::string::npos) return false;
      size_t at = got.find("content-length: ");
      size_t length = at < head ? std::stoul(got.substr(at + 16)) : 0;
      return got.size() >= head + 4 + length;
    };
    while (!whole()) {
      int n = ::SSL_read(ssl, block, sizeof block);
      if (n <= 0) return false;
      got.append(block, static_cast<size_t>(n));
    }
    std::lock_guard guard(mutex_);
    requests_.push_back(std::move(got));
    return true;
  }
  const Ways ways_;
  const std::unique_ptr<SSL_CTX, Freed> context_;
  std::atomic<int> handshakes_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::string asked_for_;
  Listener listener_;  // last: its thread uses the others
};

}  // namespace weir::net::testing
