// CertificateWatch: the certificate that the control plane shows, from its start to its renewals.
//
// Both files are looked at every ten seconds, and at SIGHUP. Where one has changed and they belong together, new
// connections are shown the new certificate. Where they do not, or one cannot be read, the old certificate stays and
// the log says why, once for each change: a renewal replaces one file after the other. The metric says when the
// certificate in use ends. Loop thread only.
#pragma once

#include "weir/net/metrics.hpp"
#include "weir/net/tls_identity.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>

namespace weir::apps {

class CertificateWatch {
 public:
  using Use = std::function<void(std::shared_ptr<const net::TlsIdentity>)>;

  // An error says what is wrong with the files.
  static Result<std::unique_ptr<CertificateWatch>> open(boost::asio::io_context& io, net::Metrics& metrics,
                                                        std::string certificate_file, std::string key_file);
  CertificateWatch(const CertificateWatch&) = delete;

  // Hands out the identity at once, and each one that takes its place.
  void start(Use use);
  void stop();
  void look(bool told = false);  // told: read the files even if they look as before

 private:
  CertificateWatch(boost::asio::io_context& io, net::Metrics& metrics, std::string certificate_file,
                   std::string key_file);
  Status load();
  std::string state_of_files() const;
  void wait();

  const std::string certificate_file_, key_file_;
  net::Gauge& ends_;
  std::string seen_;  // the files' state at the last reading
  std::shared_ptr<const net::TlsIdentity> identity_;
  Use use_;
  boost::asio::steady_timer timer_;
  bool stopped_ = false;
};

}  // namespace weir::apps
