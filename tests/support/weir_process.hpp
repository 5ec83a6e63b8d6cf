// WeirProcess: a real `weir` on loopback that ends with its test.
//
// Starts `weir control-plane` on a free port, waits until it says where it listens, keeps its log, and can be killed as
// hard as a power cut. `call` asks it over HTTP from a plain test.
#pragma once

#include "postgres_server.hpp"

#include "weir/base/result.hpp"
#include "weir/base/secret.hpp"
#include "weir/net/client.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/json/value.hpp>

#include <memory>
#include <string>
#include <vector>

namespace weir::test {

struct Reply {
  int status = 0;              // 0: no answer; `text` says why
  boost::json::value body;     // null where the body is not JSON
  std::string text;
  std::map<std::string, std::string, std::less<>> headers;

  // error.code of a Weir error, or "".
  std::string code() const;
  // A top-level text or number as text, or "".
  std::string field(std::string_view name) const;
};

class WeirProcess {
 public:
  // `database` is "sqlite:PATH" or a postgres:// URL. `folder` holds the auth secret and the log; processes that share
  // it accept each other's tokens. `more` are further flags; beside a certificate that they name lies its authority's,
  // ca.pem.
  WeirProcess(std::string folder, std::string database, std::vector<std::string> more = {});
  ~WeirProcess();
  WeirProcess(const WeirProcess&) = delete;

  // Fails the test when it does not come up. A restart keeps the port.
  void start();
  void kill_hard();
  // SIGTERM; the exit code, or -1 if it had to be killed after `limit`.
  int terminate(Duration limit = 15s);
  bool running();
  int pid() const { return pid_; }
  const std::string& folder() const { return folder_; }

  std::string url() const;
  std::string ca_file() const;  // "" where TLS is not spoken
  std::string log() const;
  // A token signed with this installation's secret.
  Secret token(const std::string& role, const std::string& sub = "test", const std::string& tenant = {}) const;

  // One request on a connection of its own, from a plain test.
  Reply call(net::Method method, const std::string& target, const boost::json::value& body, const Secret& token) const;
  Reply raw(net::ClientRequest request) const;
  Reply get(const std::string& target) const { return call(net::Method::get, target, nullptr, token("admin")); }
  Reply post(const std::string& target, const boost::json::value& body) const {
    return call(net::Method::post, target, body, token("admin"));
  }
  // Tenant t1, site s1 and cameras cam-1 … cam-<n>.
  void furnish(int cameras, const std::string& url = "rtsp://camera.example/stream") const;

 private:
  const std::string folder_, database_;
  const std::vector<std::string> more_;
  int port_ = 0;
  int pid_ = -1;
};

}  // namespace weir::test
