// LeaseSocket: where a supervisor extends a forwarder's right to send, and where the next supervisor finds it again.
//
// A Unix socket at a path, open to the same user and to root. One JSON object a line:
//
//   {"version": 1099511627780, "valid_until_us": 812345678901}
//
// is answered by what counts now, in the same form, or by {"error":{"code","message"}}. An empty object asks without
// changing anything. A connection that ends changes nothing. Loop thread only.
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

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace weir::egress
