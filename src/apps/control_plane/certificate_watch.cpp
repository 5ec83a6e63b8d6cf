#include "certificate_watch.hpp"

#include "common/files.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"

namespace weir::apps {

namespace {

constexpr std::chrono::seconds kLookEvery{10};

}  // namespace

CertificateWatch::CertificateWatch(boost::asio::io_context& io, net::Metrics& metrics, std::string certificate_file,
                                   std::string key_file)
    : certificate_file_(std::move(certificate_file)),
      key_file_(std::move(key_file)),
      ends_(metrics.gauge("weir_tls_certificate_ends_timestamp_seconds",
                          "When the certificate that the control plane shows ends, in seconds since 1970.")),
      timer_(io) {}

Result<std::unique_ptr<CertificateWatch>> CertificateWatch::open(boost::asio::io_context& io, net::Metrics& metrics,
                                                                 std::string certificate_file, std::string key_file) {
  std::unique_ptr<CertificateWatch> made(
      new CertificateWatch(io, metrics, std::move(certificate_file), std::move(key_file)));
  TRY(loaded, made->load());
  return made;
}

std::string CertificateWatch::state_of_files() const {
  return file_state(certificate_file_) + " " + file_state(key_file_);
}

Status CertificateWatch::load() {
  seen_ = state_of_files();  // before they are read: what changes meanwhile is seen at the next look
  TRY(loaded, net::TlsIdentity::load(certificate_file_, key_file_));
  identity_ = std::move(loaded);
  ends_.set(seconds(identity_->ends().time_since_epoch()));
  bool over = identity_->ends() <= wall_now();
  log::Entry(over ? log::Level::warn : log::Level::info, over ? "tls.certificate_ended" : "tls.certificate_loaded",
             over ? "the certificate has ended: clients refuse it" : "new connections are shown this certificate")
      .with("file", certificate_file_)
      .with("ends", to_iso(identity_->ends()));
  return ok();
}

void CertificateWatch::start(Use use) {
  use_ = std::move(use);
  use_(identity_);
  wait();
}

void CertificateWatch::wait() {
  timer_.expires_after(kLookEvery);
  timer_.async_wait([this](const boost::system::error_code& cancelled) {
    if (cancelled || stopped_) return;
    look();
    wait();
  });
}

// A look that was due in this moment is not cancelled any more.
void CertificateWatch::stop() {
  stopped_ = true;
  timer_.cancel();
}

void CertificateWatch::look(bool told) {
  if (!told && state_of_files() == seen_) return;
  if (Status loaded = load(); !loaded) {
    log::warn("tls.certificate_refused", loaded.error().message).with("in_use_until", to_iso(identity_->ends()));
    return;
  }
  use_(identity_);
}

}  // namespace weir::apps
