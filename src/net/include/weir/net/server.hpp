// HttpServer: HTTP/1.1 with limits everywhere, because anything can connect.
//
// Runs on one io_context thread. Bodies, headers, connections, and the time a client may take to send a request or to
// read an answer are bounded; what exceeds a bound is answered (413, 431, 408, 503) and closed. A server with an
// identity speaks TLS only; the handshake counts as a request whose header must arrive in time. A handler that throws
// answers 500 without detail and logs. Every answer carries X-Request-Id. `stop` closes the listener, lets running
// requests finish within the grace, ends event streams, and returns when the last connection is gone.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/net/router.hpp"
#include "weir/net/tls_identity.hpp"

#include <boost/asio/io_context.hpp>

#include <cstdint>

namespace weir::net {

struct ServerLimits {
  size_t body_bytes_max = 1 << 20;
  size_t header_bytes_max = 16 << 10;
  size_t connections_max = 20'000;
  Duration read_timeout = 15s;    // from the first byte of a request to its last; for the TLS handshake
  Duration idle_timeout = 75s;    // between requests
  Duration idle_when_full = 5s;   // the same, while others are refused
  Duration write_timeout = 15s;   // for one answer, or one event of a stream
  friend bool operator==(const ServerLimits&, const ServerLimits&) = default;
};

// What the observer is told about every finished request. `pattern` is "" where no route matched.
struct Finished {
  Method method;
  std::string_view pattern;
  int status;
  Duration took;
};

class HttpServer {
 public:
  HttpServer(boost::asio::io_context& io, Clock& clock, const Router& router, ServerLimits limits,
             std::function<void(const Finished&)> observer = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;

  // New connections speak TLS and are shown this from now on; those that there are go on as they began. Loop thread.
  void use(std::shared_ptr<const TlsIdentity> identity);
  // "127.0.0.1:8080", "[::1]:0", "0.0.0.0:8080"; port 0 takes a free one. Fails with a sentence ("address in use").
  Status listen(std::string_view address);
  // The first of 64 ports from `port` on that nobody else listens on; any free one for 0.
  Status listen_from(std::string_view host, int port);
  // The first of 7 ports from `port` downwards that nobody else listens on; any free one for 0. From 9107 that ends at
  // 9101, above the port of Prometheus' node exporter.
  Status listen_down_from(std::string_view host, int port);
  // The address really bound, "127.0.0.1:43121".
  std::string address() const;
  size_t connections() const;
  boost::asio::awaitable<void> stop(Duration grace);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace weir::net
