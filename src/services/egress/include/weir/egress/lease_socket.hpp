// LeaseSocket: where a supervisor extends a forwarder's right to send, and where the next supervisor finds it again.
//
// A Unix socket at a path, open to the same user and to root. One JSON object a line:
//
//   {"version": 1099511627780, "valid_until_us": 812345678901, "keep_until_us": 812370678901}
//
// is answered by what counts now, in the same form and with "control", where this process serves its metrics, or by
// {"error":{"code","message"}}. Without `keep_until_us` it is the
// same as `valid_until_us` (send_right.hpp says what the two mean). An empty object asks without changing anything. A connection that ends changes nothing. Loop thread only.
#pragma once

#include "weir/egress/send_right.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include <functional>

namespace weir::egress {

class LeaseSocket {
 public:
  // `changed` is called after each extension.
  LeaseSocket(boost::asio::io_context& io, SendRight& right, std::function<void()> changed);
  ~LeaseSocket();
  LeaseSocket(const LeaseSocket&) = delete;

  // A socket that a dead process left there is replaced; one on which a process answers is not.
  Status listen(const std::string& path);
  // Where this process serves health and metrics: "http://127.0.0.1:PORT".
  void tell_control(std::string url);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace weir::egress
