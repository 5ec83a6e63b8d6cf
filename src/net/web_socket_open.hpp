// How a WebSocket begins: the opening handshake of HTTP, on either side. What Beast needs for it stays in one file.
// Loop thread only.
#pragma once

#include "sealed_socket.hpp"

#include "weir/net/client.hpp"

namespace weir::net {

using HeaderList = std::vector<std::pair<std::string, std::string>>;

// The server's part. The handshake must end within `patience`.
boost::asio::awaitable<Result<WebSocket>> accept_web_socket(SealedSocket socket, const Request& request,
                                                            HeaderList headers, WebSocketLimits limits,
                                                            Duration patience);

// The client's part, on a connection that is open. A refusal comes back as the error that the server named.
struct WebSocketDial {
  std::string name, target;  // as the Host header says it; path and query
  HeaderList headers;
  Duration patience;
};
boost::asio::awaitable<Result<WebSocket>> dial_web_socket(SealedSocket socket, WebSocketDial dial,
                                                          WebSocketLimits limits);

}  // namespace weir::net
