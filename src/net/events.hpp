// Server-sent events on a connection's socket.
//
// One event is written whole before the next. While nothing is sent, `tend` writes a comment every 15 seconds, so that
// a client which is gone is found. Loop thread only.
#pragma once

#include "connection.hpp"

namespace weir::net {

class Connection::Events final : public EventStream {
 public:
  Events(SealedSocket& socket, Clock& clock, Duration write_timeout, bool chunked);

  boost::asio::awaitable<Status> send_text(std::string_view events) override;
  void tend(Instant now);
  // The client has gone: nothing is written any more.
  void give_up() { gone_ = true; }
  // Writes the end of the stream, where the client is still there.
  boost::asio::awaitable<void> finish();

 private:
  bool append(std::string_view text);
  void write_now(Instant now);
  void cut_off();

  SealedSocket& socket_;
  Clock& clock_;
  const Duration write_timeout_;
  const bool chunked_;
  std::string unsent_;  // as it is written: encrypted where TLS is spoken
  bool sending_ = false;
  bool gone_ = false;
  Instant written_;                    // when the last byte was taken
  Instant deadline_ = Instant::max();  // for what is unsent
};

}  // namespace weir::net
