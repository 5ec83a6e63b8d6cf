// HttpClient: asks one service, at one or several addresses, over connections that are kept and reused.
//
// It sticks to the address that answers and goes on to the next one, on new connections, when a request or a stream
// fails there, or is answered with a server's error or with what `usable` refuses; asking again is the caller's part.
// While the resolver fails or is silent, a name means what it meant before. A request has one deadline that covers
// resolving, connecting, writing and reading; past it the connection is closed and the answer is an `unavailable`
// error. A kept connection that the server had closed in the meantime is retried once on a new one, but only when no
// byte of an answer had come and the request is idempotent or marked `replayable` (lease calls carry keys). Answers
// are bounded. An address with https:// is asked over TLS, with the same deadlines; its certificate is always
// checked. Large bodies stream: `upload` is read, and `sink` fed, piece by piece, with no more than one piece in
// memory; `timeout` is then for each step of the conversation, not for the whole of it, and does not run while a source
// or a sink takes its time. Such a request has a connection of its own and is never sent twice. Where the server
// answers before it has the whole upload, the rest is not sent. A request with `write_by` is for publishers, which may
// publish only until then: the time is looked at after everything that can block and right before each handing-over of
// bytes; past it the error's reason is "deadline_passed". Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/base/secret.hpp"
#include "weir/net/http.hpp"

namespace weir::net {

struct ClientResponse {
  int status = 0;
  std::map<std::string, std::string, std::less<>> headers;  // names in lower case
  std::string body;
};

struct ClientRequest {
  Method method = Method::get;
  std::string target;     // path and query, already encoded
  std::string body = {};
  Secret bearer = {};
  Duration timeout = 10s;
  bool replayable = false;
  std::optional<Instant> write_by = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  // Whether an answer is really the service's; where it is not, the client leaves that address as after a failure. Of
  // a stream, only the head is known then.
  std::function<bool(const ClientResponse&)> usable = {};
  std::string content_type = "application/json";  // of `body` or `upload`
  BodySource upload = {};                         // instead of `body`
  // Takes the body of an answer with status 2xx, whose `body` stays empty; an error ends the request with this error.
  // What came before a failure has been handed over: only where `send` succeeds was it everything.
  std::function<boost::asio::awaitable<Status>(std::string)> sink = {};
  std::uint64_t sink_bytes_max = 1ULL << 40;
};

struct ClientOptions {
  size_t answer_bytes_max = 64 << 20;
  // For publishers: bytes that the kernel still holds when the connection is closed, or when the process dies, are
  // thrown away instead of sent later; and the kernel's buffer is small.
  bool forget_unsent = false;
  std::string ca_file = {};  // authorities (PEM) that are believed besides the system's, for https
};

struct StreamedEvent {
  std::string id, event, data;
  bool progress = false;  // nothing but an id: how far the stream has come without an event for this listener
};

class HttpClient {
 public:
  // "http://127.0.0.1:8080", "https://plane.example/weir", or several with commas between; a path is kept as a prefix.
  // "ws://" and "wss://" are other words for the same.
  static Result<HttpClient> create(boost::asio::io_context& io, std::string_view base_urls,
                                   ClientOptions options = {});
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;
  ~HttpClient();

  boost::asio::awaitable<Result<ClientResponse>> send(ClientRequest request);
  // Server-sent events: calls `each` for every event until it returns false, the server ends the stream, or nothing
  // (not even a comment) arrives for `silence`.
  boost::asio::awaitable<Status> follow(ClientRequest request, Duration silence,
                                        std::function<bool(const StreamedEvent&)> each);
  // Opens a WebSocket at the request's target within its `timeout`. A refusal is the error that the server named.
  boost::asio::awaitable<Result<WebSocket>> web_socket(ClientRequest request, WebSocketLimits limits = {});
  void close_idle();
  // Other addresses, from the next request on; what is under way goes on.
  Status use(std::string_view base_urls);

 private:
  struct State;
  explicit HttpClient(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// The error of a Weir server's answer: its code, message and details, or a plain one where the body is something else.
Error response_error(const ClientResponse& response);
// Whether a refusal says nothing about the matter itself: 401, 403 and 404, where another address may answer
// otherwise, and every answer that does not come from a Weir server.
bool says_nothing(const ClientResponse& refusal);

}  // namespace weir::net
