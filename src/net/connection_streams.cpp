// What lasts longer than one answer: event streams and WebSockets.
#include "connection.hpp"
#include "events.hpp"
#include "response_head.hpp"
#include "web_socket_open.hpp"
#include "weir/base/log.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>

#include <netinet/tcp.h>

namespace weir::net {

namespace asio = boost::asio;

namespace {
constexpr std::uint16_t kNormal = 1000, kGoingAway = 1001, kInternalError = 1011;

bool has_token(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    size_t comma = std::min(list.find(','), list.size());
    std::string_view one = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    while (one.starts_with(' ') || one.starts_with('\t')) one.remove_prefix(1);
    while (one.ends_with(' ') || one.ends_with('\t')) one.remove_suffix(1);
    if (same_ignoring_case(one, token)) return true;
  }
  return false;
}

// Why a request cannot be answered with a WebSocket; nothing where it can.
std::optional<Error> upgrade_problem(const Request& request, bool http11) {
  bool asked = http11 && request.method == Method::get && has_token(request.header("connection"), "upgrade") &&
               has_token(request.header("upgrade"), "websocket");
  if (!asked) return Error{Errc::invalid, "upgrade_required", "this path speaks WebSocket only"};
  if (request.header("sec-websocket-version") != "13")
    return Error{Errc::invalid, "upgrade_required", "Sec-WebSocket-Version: must be 13"};
  if (request.header("sec-websocket-key").size() != 24)
    return Error{Errc::invalid, "bad_request", "Sec-WebSocket-Key: must be 16 bytes in base64"};
  return std::nullopt;
}
}  // namespace

// ---- event streams ----
asio::awaitable<void> Connection::run_stream(Response& response) {
  // From here on cancellation is looked at, not thrown: the handler's end must be waited for.
  co_await asio::this_coro::throw_if_cancelled(false);
  bool chunked = parser_.http11();
  response.content_type = kEventStream;
  std::erase_if(response.headers, [](const auto& each) { return same_ignoring_case(each.first, "cache-control"); });
  response.headers.emplace_back("cache-control", "no-store");
  head_.clear();
  write_head(head_, response,
             {.http11 = chunked, .keep_alive = false, .request_id = request_.request_id, .date = shared_->date()});
  error_code failed;
  co_await socket_.write_all(head_, {}, failed);
  if (failed || shared_->stopping || shared_->abandoned) co_return;

  // A client that vanished without closing is noticed because it acknowledges nothing.
  int patience = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(shared_->limits.write_timeout).count());
  ::setsockopt(socket_.raw().native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, sizeof patience);
  events_ = std::make_unique<Events>(socket_, shared_->clock, shared_->limits.write_timeout, chunked);
  phase_ = Phase::streaming;
  spawn_stream(run_events(shared_from_this(), std::move(response.stream)));
  // Bytes that a client sends on a stream are ignored; the end of its connection is not.
  while (!stream_done_ && !failed) co_await socket_.read_some(in_.bytes.get(), in_.size, failed);
  if (!stream_done_) {
    events_->give_up();
    stream_cancel_.emit(asio::cancellation_type::all);
  }
  while (!stream_done_) co_await wait(stream_end_);
  if (stream_broken_ || shared_->abandoned) co_return;
  enter(Phase::writing, shared_->limits.write_timeout);
  co_await events_->finish();
}

asio::awaitable<void> Connection::run_events(std::shared_ptr<Connection> self, decltype(Response::stream) stream) {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await stream(*self->events_);
}

// ---- WebSockets ----
void Connection::check_upgrade(Response& response) {
  auto problem = upgrade_problem(request_, parser_.http11());
  response.status = 101;
  if (!problem) return;
  response = Response::failure(*problem);
  if (problem->reason != "upgrade_required") return;
  response.status = 426;
  response.headers = {{"upgrade", "websocket"}, {"sec-websocket-version", "13"}};
}

asio::awaitable<void> Connection::run_socket(Response& response) {
  co_await asio::this_coro::throw_if_cancelled(false);
  HeaderList headers = std::move(response.headers);
  headers.emplace_back("x-request-id", request_.request_id);
  socket_.put_back({in_.bytes.get() + in_.begin, in_.end - in_.begin});
  in_ = Received(0);
  auto opened = co_await accept_web_socket(std::move(socket_), request_, std::move(headers), response.socket_limits,
                                           shared_->limits.write_timeout);
  if (!opened || shared_->abandoned) co_return;
  WebSocket socket = *std::move(opened);
  socket_talk_ = &socket;
  phase_ = Phase::talking;
  deadline_ = Instant::max();
  if (shared_->stopping) socket.begin_close(kGoingAway, "the server stops");
  spawn_stream(run_talk(shared_from_this(), std::move(response.socket)));
  co_await socket.over();
  // A handler hears of the end where it receives or sends. One that waits for something else is told in the end.
  if (!shared_->abandoned) enter(Phase::talking, response.socket_limits.close_timeout);
  while (!stream_done_) co_await wait(stream_end_);
  socket_talk_ = nullptr;
}

asio::awaitable<void> Connection::run_talk(std::shared_ptr<Connection> self, decltype(Response::socket) talk) {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await talk(*self->socket_talk_);
}

// ---- the handlers of both ----
void Connection::spawn_stream(asio::awaitable<void> handler) {
  auto ended = [self = shared_from_this()](std::exception_ptr thrown) { self->stream_ended(std::move(thrown)); };
  asio::co_spawn(stream_end_.get_executor(), std::move(handler),
                 asio::bind_cancellation_slot(stream_cancel_.slot(), std::move(ended)));
}

void Connection::stream_ended(std::exception_ptr thrown) {
  stream_done_ = true;
  if (thrown && !is_cancellation(thrown)) {
    stream_broken_ = true;
    log::error("http.stream_failed", "the handler of an event stream or a WebSocket threw")
        .with("request_id", request_.request_id)
        .with("what", what(thrown));
  }
  if (socket_talk_ != nullptr) socket_talk_->begin_close(stream_broken_ ? kInternalError : kNormal, "");
  error_code ignored;
  stream_end_.cancel();
  socket_.raw().cancel(ignored);
}

}  // namespace weir::net
