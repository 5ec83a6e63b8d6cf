// ClientLink: one connection of an HttpClient to one address, from the look-up of its name to its end.
//
// One deadline covers all it does; past it the socket is closed, `expired` is set, and pending operations fail. TLS is
// spoken where the address wants it. It is closed with its last owner. Loop thread only.
#pragma once

#include "base_url.hpp"
#include "response_parser.hpp"
#include "sealed_socket.hpp"

#include "weir/net/client.hpp"

#include <memory>
#include <string>
#include <vector>

namespace weir::net {

inline constexpr Duration kTimeoutMax = 24h * 365;  // "for ever" must not overflow

inline bool idempotent(Method method) { return method != Method::post && method != Method::patch; }

class ClientLink : public std::enable_shared_from_this<ClientLink> {
 public:
  ClientLink(boost::asio::io_context& io, std::shared_ptr<BaseUrl> to, std::shared_ptr<const TlsTrust> trust,
             bool forget_unsent);

  void set_deadline(Duration from_now);
  void disarm();
  // False where the server has closed the connection, or has sent bytes without being asked.
  bool still_good() { return !readable(); }

  boost::asio::awaitable<Status> open();
  boost::asio::awaitable<Status> write(const ClientRequest& request);
  // A part of the body that `write` has announced.
  boost::asio::awaitable<Status> write_part(std::string_view head, std::string_view body);
  // Whether there is something to read, or the connection has ended.
  bool readable();
  // The open connection, for a conversation of another kind; this link is over then.
  struct Released {
    SealedSocket socket;
    Duration left;  // of the deadline
  };
  Released release();
  // Reads once and parses what came.
  boost::asio::awaitable<Status> read_step(ResponseParser& parser);

  const std::shared_ptr<BaseUrl> base;
  bool expired = false;
  bool reused = false;
  std::string unread;  // received, decrypted and not yet parsed

 private:
  struct Resolution;
  void arm();
  std::shared_ptr<Resolution> look_up();
  boost::asio::awaitable<Status> wait_for(const Resolution& found, Duration patience);
  boost::asio::awaitable<void> dial(std::vector<tcp::endpoint> endpoints, error_code& failed);
  boost::asio::awaitable<Status> shake_hands();
  boost::asio::awaitable<Status> receive(bool& ended);
  boost::asio::awaitable<Status> write_bytes(std::string_view head, std::string_view body,
                                             std::optional<Instant> write_by);
  Error broken(std::string_view doing, const error_code& failed) const;

  const std::shared_ptr<const TlsTrust> trust_;  // where the address wants TLS
  const bool forget_unsent_;
  SealedSocket socket_;
  boost::asio::steady_timer timer_;
  tcp::resolver resolver_;
  std::chrono::steady_clock::time_point deadline_{};
  std::uint64_t rounds_ = 0;
  bool armed_ = false;
};
using ClientLinkPtr = std::shared_ptr<ClientLink>;

}  // namespace weir::net
