// The words of HTTP as the rest of Weir uses them. No Beast type appears here or in any other header of this folder.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/net/web_socket.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::net {

enum class Method { get, head, post, put, patch, del, options, other };
std::string_view to_string(Method method);

// A body that is read piece by piece, because it may be too large to be held at once. Loop thread only.
class BodyReader {
 public:
  virtual ~BodyReader() = default;
  // What has come, "" at the end of the body. An error means that the rest will not come; the client is then told why.
  virtual boost::asio::awaitable<Result<std::string>> read_some() = 0;
};

// Where a body that is sent piece by piece comes from. It is asked for the next piece when the last one has been taken.
struct BodySource {
  std::function<boost::asio::awaitable<Result<std::string>>()> next = {};  // "" at the end
  std::optional<std::uint64_t> bytes = {};  // where known: what `next` yields in all, and the Content-Length
};

struct Request {
  Method method = Method::get;
  std::string path;                                     // percent-decoded, without the query
  std::map<std::string, std::string, std::less<>> query;  // percent-decoded; the last of two equal names wins
  std::map<std::string, std::string, std::less<>> headers;  // names in lower case
  std::map<std::string, std::string, std::less<>> params;  // what the route's {names} matched
  std::string body;
  BodyReader* streamed = nullptr;  // the body, where the route declares a StreamedBody; lives as long as the handler
  std::string request_id;   // the client's X-Request-Id when it is sane, else made here
  std::string remote;       // the peer's address, for logs
  bool encrypted = false;   // it came over TLS, to this server itself

  std::string_view header(std::string_view lower_name) const;
  const std::string& param(std::string_view name) const;  // present because the route says so
  std::optional<std::string> query_value(std::string_view name) const;
};

// Where a handler writes an endless answer: server-sent events. Loop thread only.
class EventStream {
 public:
  virtual ~EventStream() = default;
  // Any number of whole events, each as `event_text` makes it: what many clients get is formatted once.
  // Waits while the client is slow; an error means it is gone or was cut off.
  virtual boost::asio::awaitable<Status> send_text(std::string_view events) = 0;
};
std::string event_text(std::string_view id, std::string_view event, std::string_view data);

struct Response {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  // Set for server-sent events: runs after the header was sent; the stream ends when it returns.
  std::function<boost::asio::awaitable<void>(EventStream&)> stream = {};
  // Set for a body that is streamed; where the source fails, the client finds the answer cut off.
  BodySource source = {};
  // Set for a WebSocket: runs after the upgrade; when it returns, the connection is closed. It is cancelled where it
  // goes on for `close_timeout` after the connection's end. A request that is no upgrade is answered with 426.
  std::function<boost::asio::awaitable<void>(WebSocket&)> socket = {};
  WebSocketLimits socket_limits = {};

  static Response json(const boost::json::value& v, int status = 200);
  static Response text(std::string body, int status = 200, std::string type = "text/plain; charset=utf-8");
  // {"error":{"code","message","details"}} with the status that belongs to the error's class.
  static Response failure(const Error& error);
};
int http_status(Errc code);

using Handler = std::function<boost::asio::awaitable<Response>(Request&)>;

}  // namespace weir::net
