// Papers: an authority, and the files of the certificate that a control plane of a test shows.
// Main thread only.
#pragma once

#include "temp_files.hpp"
#include "tls_testing.hpp"

#include "weir/net/tls_identity.hpp"

namespace weir::test {

class Papers {
 public:
  Papers() {
    authority_.write(ca());
    renew();
  }
  // When the certificate ends, in seconds since 1970.
  std::int64_t renew(long seconds_left = 90 * 86400) {
    auto made = authority_.issue("IP:127.0.0.1", seconds_left);
    made->write(file("server.pem"));
    made->write_key(file("server.key"));
    return (*net::TlsIdentity::load(file("server.pem"), file("server.key")))->ends().time_since_epoch() / 1s;
  }
  void write_foreign_key() { authority_.issue("IP:127.0.0.1")->write_key(file("server.key")); }
  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string ca() const { return file("ca.pem"); }
  std::vector<std::string> of_plane() const {
    return {"--tls-certificate-file", file("server.pem"), "--tls-key-file", file("server.key")};
  }
  std::vector<std::string> of_clients() const { return {"--control-plane-ca-file", ca()}; }

 private:
  TempDir folder_;
  const net::testing::Authority authority_;
};

}  // namespace weir::test
