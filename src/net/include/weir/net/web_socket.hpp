// WebSocket: messages both ways with one peer, the same for the side that connected and for the side that was asked.
//
// `HttpClient::web_socket` connects; a server's handler gets one where its answer says so (`Response::socket`). The
// connection is read, written and watched by coroutines of its own. At most one received message waits to be taken:
// until somebody takes it nothing more is read, so a peer that sends too fast is slowed down. Sent messages wait in a
// queue that is bounded in bytes, and leave in the order in which they were given; any number of coroutines may send.
// A peer that takes no bytes for `write_timeout` is cut off. A connection that was silent for `ping_after` is pinged,
// and ends if nothing comes back. Texts are checked to be UTF-8 in both directions and are compressed where the peer
// agrees; binary messages are sent as they are. Dropping the object cuts the connection. Loop thread only.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace weir::net {

struct WebSocketLimits {
  size_t message_bytes_max = 1 << 20;  // of a received message; a larger one ends the connection with code 1009
  size_t queue_bytes_max = 4 << 20;    // of messages that wait to be sent; a single larger one waits alone
  Duration ping_after = 20s;           // of silence
  Duration pong_timeout = 10s;
  Duration write_timeout = 15s;        // within which the peer must take the next 64 KB, or what is left
  Duration close_timeout = 5s;         // from the wish to close to the end of the connection
  bool compress = true;
  friend bool operator==(const WebSocketLimits&, const WebSocketLimits&) = default;
};

// No aggregate: GCC 12 destroys one that is built within a co_await expression twice.
struct WebSocketMessage {
  WebSocketMessage() = default;
  WebSocketMessage(std::string all, bool is_binary) : bytes(std::move(all)), binary(is_binary) {}
  std::string bytes;
  bool binary = false;
};

// Why a WebSocket is over. `code` is that of its close frame, whoever sent it; 1005 where the frame named none, 1006
// where there was no frame.
struct WebSocketEnd {
  enum class Why {
    closed_by_peer,
    closed_here,
    silent,       // the peer answered no ping
    too_large,    // the peer sent a message above the limit
    bad_message,  // the peer sent a text that is not UTF-8, or broke the protocol
    too_slow,     // the peer did not take what was sent
    lost,         // the connection broke, or was dropped here
  };
  Why why = Why::lost;
  std::uint16_t code = 1006;
  std::string text = {};
};

class WebSocket {
 public:
  class Impl;
  explicit WebSocket(std::shared_ptr<Impl> impl);
  WebSocket(WebSocket&& other) noexcept;
  WebSocket& operator=(WebSocket&& other) noexcept;
  ~WebSocket();

  // The next message; nothing once the connection is over, or where the caller was cancelled.
  boost::asio::awaitable<std::optional<WebSocketMessage>> receive();
  // Queues the message; waits while the queue has no room for it. An error means that it will not be sent.
  boost::asio::awaitable<Status> send(WebSocketMessage message);
  // Queues the message at once. A peer for which the queue has no room is cut off: for what many peers are told and
  // none may hold up.
  Status post(WebSocketMessage message);
  size_t queued_bytes() const;  // what the queue takes of the memory

  // Sends what is queued, then closes; returns when the connection is over. Later messages are refused.
  boost::asio::awaitable<void> close(std::uint16_t code = 1000, std::string reason = {});
  void begin_close(std::uint16_t code = 1000, std::string reason = {});
  void cut();
  // Returns when the connection is over, and nothing of it runs any more.
  boost::asio::awaitable<void> over() const;
  // Set once the connection is over.
  const std::optional<WebSocketEnd>& end() const;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace weir::net
