// Connection: one client of an HttpServer, from accept to close, in one coroutine. Where the server has an identity,
// the conversation begins with a TLS handshake, for which the client has the time of one request.
//
// Requests of a connection are served one after the other. Time limits cost nothing per request: a connection only
// notes its deadline, and the server's sweep calls `tend` on each about once a second. The handler of an event stream
// or a WebSocket runs in a coroutine of its own, because it waits for something else than the client; the connection's
// coroutine then watches for the client's leaving and waits for the handler's end. Loop thread only.
#pragma once

#include "request_parser.hpp"
#include "sealed_socket.hpp"
#include "weir/base/log_limit.hpp"
#include "weir/net/server.hpp"

#include <boost/asio/cancellation_signal.hpp>

namespace weir::net {

class Connection;

// Whether a coroutine ended because it was cancelled; and the words of any other exception.
bool is_cancellation(const std::exception_ptr& thrown);
std::string what(const std::exception_ptr& thrown);

// What the connections of one server share.
struct ServerShared {
  ServerShared(boost::asio::io_context& on, Clock& with, const Router& routes, ServerLimits bounds,
               std::function<void(const Finished&)> told);
  // Wakes the callers of `stop` when nothing of the server runs any more.
  void note_end();
  std::string_view date();
  std::string next_request_id();

  boost::asio::io_context& io;
  Clock& clock;
  const Router& router;
  const ServerLimits limits;
  std::function<void(const Finished&)> observer;

  std::vector<Connection*> open;  // in no order; each connection knows its place
  int loops = 0;                  // accept loops and the sweep
  bool stopping = false;
  bool abandoned = false;  // the HttpServer is gone, so clock, router and observer may be gone too
  boost::asio::steady_timer ended;
  boost::asio::cancellation_signal wake_sweep;
  LogLimit failed_handshakes{1min};

 private:
  const std::string id_prefix_;
  std::uint32_t id_counter_ = 0;
  std::string date_;
  std::int64_t date_second_ = -1;
};

// A buffer of what was received: [begin, end) of its bytes are not parsed yet.
struct Received {
  explicit Received(size_t bytes_max) : bytes(std::make_unique_for_overwrite<char[]>(bytes_max)), size(bytes_max) {}
  std::unique_ptr<char[]> bytes;
  size_t size, begin = 0, end = 0;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  enum class Mode { serve, refuse };
  Connection(std::shared_ptr<ServerShared> shared, SealedSocket socket);
  ~Connection();
  void start(Mode mode);

  // Acts on a deadline that has passed; keeps event streams alive. `crowded`: others wait for its place.
  void tend(Instant now, bool crowded);
  // The server stops: ends what can end at once.
  void wind_down();
  void close_hard();

 private:
  class Events;
  class Upload;
  enum class Phase { greeting, idle, reading, handling, writing, streaming, talking, lingering };
  enum class Read { complete, streamed, refused, closed };
  struct Report;
  struct Routed;

  static boost::asio::awaitable<void> run(std::shared_ptr<Connection> self, Mode mode);
  boost::asio::awaitable<bool> greet();
  boost::asio::awaitable<void> refuse(Refusal why);
  boost::asio::awaitable<bool> serve_one();
  boost::asio::awaitable<Read> read_request();
  boost::asio::awaitable<Read> read_more();
  Read refused();
  void parse();
  bool begin_body();
  boost::asio::awaitable<Response> respond(Report& report);
  boost::asio::awaitable<Response> call_handler(const Router::Match& match);
  boost::asio::awaitable<bool> write_response(Response& response, bool keep_alive);
  boost::asio::awaitable<bool> write_source(Response& response, bool keep_alive);
  boost::asio::awaitable<Result<std::string>> next_piece(BodySource& source);
  boost::asio::awaitable<void> run_stream(Response& response);
  boost::asio::awaitable<void> run_socket(Response& response);
  static boost::asio::awaitable<void> run_events(std::shared_ptr<Connection> self, decltype(Response::stream) stream);
  static boost::asio::awaitable<void> run_talk(std::shared_ptr<Connection> self, decltype(Response::socket) talk);
  void spawn_stream(boost::asio::awaitable<void> handler);
  boost::asio::awaitable<void> linger();

  Routed route();
  void check_upgrade(Response& response);
  void identify();
  void stream_ended(std::exception_ptr thrown);
  bool make_room();
  void enter(Phase phase, Duration limit);
  void hang_up();

  const std::shared_ptr<ServerShared> shared_;
  size_t place_;
  SealedSocket socket_;
  const std::string remote_;
  boost::asio::cancellation_signal cancel_;

  Phase phase_ = Phase::idle;
  Instant deadline_ = Instant::max();
  bool timed_out_ = false;
  bool closed_hard_ = false;

  RequestParser parser_;
  Request request_;
  std::optional<Refusal> refusal_;
  bool continued_ = false;  // the client was told to send its body
  bool unread_ = false;     // the handler left some of it
  bool torn_ = false;       // an answer's end did not come, and nothing may look like one
  Instant begun_{};
  Received in_;
  std::string head_;

  std::unique_ptr<Events> events_;
  WebSocket* socket_talk_ = nullptr;
  boost::asio::cancellation_signal stream_cancel_;
  bool stream_done_ = false;
  bool stream_broken_ = false;
  boost::asio::steady_timer stream_end_;
};

}  // namespace weir::net
