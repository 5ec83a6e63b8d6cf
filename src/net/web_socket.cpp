#include "weir/net/web_socket.hpp"

#include "web_socket_open.hpp"
#include "wire.hpp"
#include "weir/base/ids.hpp"
#include "weir/base/log.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/websocket/stream.hpp>

#include <algorithm>
#include <deque>

namespace weir::net {

namespace asio = boost::asio;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;

namespace {
constexpr size_t kFirstReadBytes = 4 << 10, kReadBytes = 64 << 10;  // a frame's length is but a claim
constexpr size_t kWriteBytes = 16 << 10;
constexpr size_t kCompressedBytesMin = 256;
constexpr int kWindowBits = 12, kLevel = 3;  // 25 kB for a connection that compresses, and little of the loop's time
constexpr size_t kReasonBytesMax = 123;
constexpr std::uint16_t kTooSlow = 1008;
constexpr Duration kTickMin = 5ms, kTickMax = 1s, kStuck = 100ms;
const auto kNoLimit = websocket::stream_base::none();

using Moment = Wire::Moment;
using Why = WebSocketEnd::Why;

Moment now() { return std::chrono::steady_clock::now(); }

Error over_error() { return Error{Errc::unavailable, "socket_over", "the WebSocket's connection is over"}; }

asio::awaitable<bool> cancelled() {
  auto state = co_await asio::this_coro::cancellation_state;
  co_return state.cancelled() != asio::cancellation_type::none;
}

// What a message takes of the memory; a queue of empty ones is bounded, too.
size_t cost(const WebSocketMessage& message) { return message.bytes.capacity() + sizeof message; }

Error handshake_error(const error_code& failed, const websocket::response_type& answer, const std::string& name) {
  if (failed == websocket::error::upgrade_declined) {
    ClientResponse refusal{.status = static_cast<int>(answer.result_int()), .headers = {}, .body = answer.body()};
    return response_error(refusal);
  }
  if (failed == boost::beast::error::timeout)
    return Error{Errc::unavailable, "timeout", fmt::format("{} did not answer in time", name)};
  if (failed == asio::error::operation_aborted)
    return Error{Errc::unavailable, "cancelled", fmt::format("the connection to {} was given up", name)};
  return Error{Errc::unavailable, "no_web_socket",
               fmt::format("{} does not open a WebSocket: {}", name, failed.message())};
}

http::request<http::empty_body> upgrade_request(const Request& request) {
  http::request<http::empty_body> out(http::verb::get, "/", 11);
  for (const char* name : {"host", "upgrade", "connection", "sec-websocket-key", "sec-websocket-version",
                           "sec-websocket-extensions"})
    if (std::string_view value = request.header(name); !value.empty()) out.set(name, {value.data(), value.size()});
  return out;
}

auto decorator_of(HeaderList headers, http::field own_name) {
  return websocket::stream_base::decorator([headers = std::move(headers), own_name](auto& message) {
    message.set(own_name, "weir");
    for (const auto& [name, value] : headers) message.insert(name, value);
  });
}
}  // namespace

// Three coroutines share it: the reader, the writer, and the watch over all time limits. Each ends once `end` is set.
class WebSocket::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(SealedSocket socket, WebSocketLimits limits);

  // `handshake` is one of the two below. Cancelling the caller gives up.
  static asio::awaitable<Status> open(std::shared_ptr<Impl> self, asio::awaitable<Status> handshake);
  asio::awaitable<Status> accept(http::request<http::empty_body> request, HeaderList headers, Duration patience);
  asio::awaitable<Status> dial(WebSocketDial dial);

  asio::awaitable<std::optional<WebSocketMessage>> receive();
  asio::awaitable<Status> send(WebSocketMessage message);
  Status post(WebSocketMessage message);
  void begin_close(std::uint16_t code, std::string reason);
  asio::awaitable<void> over();
  // The first reason counts.
  void finish(WebSocketEnd end, bool cut);

  std::optional<WebSocketEnd> end;
  size_t queued = 0;

 private:
  void run(asio::awaitable<void> work, asio::cancellation_slot slot = {});
  void set_patience(websocket::stream_base::duration patience);
  asio::awaitable<void> read_all();
  asio::awaitable<error_code> read_message(WebSocketMessage& message);
  asio::awaitable<void> write_all_queued();
  asio::awaitable<bool> write_one();
  asio::awaitable<void> watch();
  void look(Moment at);
  void give_up_closing();
  void look_at_silence(Moment at);
  bool fits(const WebSocketMessage& message) const {
    return queue_.empty() || queued + cost(message) <= limits_.queue_bytes_max;
  }
  Status check(const WebSocketMessage& message) const;
  void put(WebSocketMessage message);
  WebSocketEnd end_of(const error_code& failed) const;
  void changed() { changed_.cancel(); }

  websocket::stream<Wire> stream_;
  const WebSocketLimits limits_;
  asio::steady_timer changed_, tick_;  // the first never expires: cancelling it wakes everybody who waits
  asio::cancellation_signal stop_reading_, stop_writing_;
  int running_ = 0;

  std::optional<WebSocketMessage> arrived_;
  bool reading_ = false;
  std::deque<WebSocketMessage> queue_;
  std::optional<Moment> writing_since_;
  bool ping_due_ = false;
  std::optional<Moment> pinged_at_;
  Moment waited_until_{};  // when the last received message was still waiting to be taken
  std::optional<websocket::close_reason> goodbye_;
  std::optional<Moment> closing_since_;
};

WebSocket::Impl::Impl(SealedSocket socket, WebSocketLimits limits)
    : stream_(std::move(socket)), limits_(limits),
      changed_(stream_.get_executor(), Moment::max()), tick_(stream_.get_executor()) {
  stream_.read_message_max(limits_.message_bytes_max);
  stream_.auto_fragment(false);
  stream_.write_buffer_bytes(kWriteBytes);
  websocket::permessage_deflate deflate;
  deflate.server_enable = deflate.client_enable = limits_.compress;
  deflate.server_max_window_bits = deflate.client_max_window_bits = kWindowBits;
  deflate.compLevel = kLevel;
  deflate.msg_size_threshold = kCompressedBytesMin;
  stream_.set_option(deflate);
}

// ---- opening ----
void WebSocket::Impl::set_patience(websocket::stream_base::duration patience) {
  stream_.set_option(websocket::stream_base::timeout{patience, kNoLimit, false});
}

asio::awaitable<Status> WebSocket::Impl::accept(http::request<http::empty_body> request, HeaderList headers,
                                                Duration patience) {
  set_patience(patience);
  stream_.set_option(decorator_of(std::move(headers), http::field::server));
  error_code failed;
  co_await stream_.async_accept(request, asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return handshake_error(failed, {}, "the client");
  co_return ok();
}

asio::awaitable<Status> WebSocket::Impl::dial(WebSocketDial dial) {
  set_patience(dial.patience);
  stream_.set_option(decorator_of(std::move(dial.headers), http::field::user_agent));
  error_code failed;
  websocket::response_type answer;
  co_await stream_.async_handshake(answer, dial.name, dial.target,
                                   asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return handshake_error(failed, answer, dial.name);
  co_return ok();
}

asio::awaitable<Status> WebSocket::Impl::open(std::shared_ptr<Impl> self, asio::awaitable<Status> handshake) {
  auto opened = std::make_shared<std::optional<Status>>();
  auto shake = [](auto result, asio::awaitable<Status> work) -> asio::awaitable<void> {
    Status shaken = co_await std::move(work);
    result->emplace(std::move(shaken));
  };
  self->run(shake(opened, std::move(handshake)));
  while (self->running_ > 0) {
    co_await wait(self->changed_);
    bool given_up = co_await cancelled();
    if (given_up) self->finish({.text = "given up while it was being opened"}, true);
  }
  if (!*opened) co_return over_error();  // it ended by an exception
  if (!**opened) co_return std::move(**opened).error();
  self->set_patience(kNoLimit);  // from here on `watch` watches
  self->run(self->read_all(), self->stop_reading_.slot());
  self->run(self->write_all_queued(), self->stop_writing_.slot());
  self->run(self->watch());
  co_return ok();
}

// The coroutine's frame holds no reference of its own: the handler that hears of its end keeps this object.
void WebSocket::Impl::run(asio::awaitable<void> work, asio::cancellation_slot slot) {
  ++running_;
  auto ended = [self = shared_from_this()](const std::exception_ptr& thrown) {
    --self->running_;
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
      log::error("socket.broken", "a WebSocket's coroutine ended by an exception").with("what", e.what());
      self->finish({.text = "an internal error"}, true);
    }
    self->changed();
    self->tick_.cancel();
  };
  asio::co_spawn(stream_.get_executor(), std::move(work), asio::bind_cancellation_slot(slot, std::move(ended)));
}

void WebSocket::Impl::finish(WebSocketEnd reason, bool cut) {
  if (end) return;
  end = std::move(reason);
  if (cut)
    stream_.next_layer().cut();
  else
    stream_.next_layer().close();
  changed();
  tick_.cancel();
}

asio::awaitable<void> WebSocket::Impl::over() {
  while (running_ > 0) {
    co_await wait(changed_);
    bool given_up = co_await cancelled();
    if (given_up) co_return;
  }
}

// ---- reading ----
WebSocketEnd WebSocket::Impl::end_of(const error_code& failed) const {
  auto coded = [](Why why, websocket::close_code code, std::string text) {
    return WebSocketEnd{why, static_cast<std::uint16_t>(code), std::move(text)};
  };
  if (failed == websocket::error::closed && !goodbye_) {
    const websocket::close_reason& said = stream_.reason();
    auto code = static_cast<websocket::close_code>(said.code);
    if (code == websocket::close_code::none) code = websocket::close_code::no_status;
    return coded(Why::closed_by_peer, code, std::string(said.reason.data(), said.reason.size()));
  }
  if (failed == websocket::error::message_too_big)
    return coded(Why::too_large, websocket::close_code::too_big,
                 fmt::format("a message is larger than {} bytes", limits_.message_bytes_max));
  if (failed == websocket::error::bad_frame_payload)
    return coded(Why::bad_message, websocket::close_code::bad_payload, "a text is not UTF-8");
  if (failed == websocket::condition::protocol_violation)
    return coded(Why::bad_message, websocket::close_code::protocol_error, failed.message());
  if (goodbye_) return WebSocketEnd{Why::closed_here, goodbye_->code, std::string(goodbye_->reason.c_str())};
  return WebSocketEnd{.why = Why::lost, .text = failed.message()};
}

asio::awaitable<error_code> WebSocket::Impl::read_message(WebSocketMessage& message) {
  error_code failed;
  std::string& bytes = message.bytes;
  size_t held = 0;
  do {
    size_t room = held == 0 ? kFirstReadBytes : kReadBytes;
    if (bytes.size() < held + room) bytes.resize(held + room);
    held += co_await stream_.async_read_some(asio::buffer(bytes.data() + held, bytes.size() - held),
                                             asio::redirect_error(asio::use_awaitable, failed));
  } while (!failed && !stream_.is_message_done());
  bytes.resize(held);
  if (bytes.capacity() > 2 * held) bytes.shrink_to_fit();
  message.binary = stream_.got_binary();
  co_return failed;
}

asio::awaitable<void> WebSocket::Impl::read_all() {
  co_await asio::this_coro::throw_if_cancelled(false);
  while (!end) {
    if (arrived_) {
      co_await wait(changed_);
      continue;
    }
    WebSocketMessage message;
    reading_ = true;
    error_code failed = co_await read_message(message);
    reading_ = false;
    if (failed) {
      finish(end_of(failed), false);
      co_return;
    }
    arrived_ = std::move(message);
    changed();
  }
}

asio::awaitable<std::optional<WebSocketMessage>> WebSocket::Impl::receive() {
  for (;;) {
    if (arrived_) {
      std::optional<WebSocketMessage> taken = std::exchange(arrived_, std::nullopt);
      waited_until_ = now();
      changed();
      co_return taken;
    }
    if (end) co_return std::nullopt;
    co_await wait(changed_);
    bool given_up = co_await cancelled();
    if (given_up && !arrived_) co_return std::nullopt;
  }
}

// ---- writing ----
Status WebSocket::Impl::check(const WebSocketMessage& message) const {
  if (end || goodbye_) return over_error();
  if (!message.binary && !valid_utf8(message.bytes))
    return Error{Errc::invalid, "not_utf8", "a text message must be UTF-8"};
  return ok();
}

void WebSocket::Impl::put(WebSocketMessage message) {
  queued += cost(message);
  queue_.push_back(std::move(message));
  changed();
}

asio::awaitable<Status> WebSocket::Impl::send(WebSocketMessage message) {
  CO_TRY(clean, check(message));
  while (!fits(message)) {
    co_await wait(changed_);
    bool given_up = co_await cancelled();
    if (given_up) co_return Error{Errc::unavailable, "cancelled", "the message was not sent: its sender was cancelled"};
    if (end || goodbye_) co_return over_error();
  }
  put(std::move(message));
  co_return ok();
}

Status WebSocket::Impl::post(WebSocketMessage message) {
  TRY(clean, check(message));
  if (fits(message)) {
    put(std::move(message));
    return ok();
  }
  finish({Why::too_slow, kTooSlow, fmt::format("the peer left {} bytes unread", queued)}, true);
  return over_error();
}

// A failure is told by the reader, which may know the peer's own words; where it does not read, here.
asio::awaitable<bool> WebSocket::Impl::write_one() {
  error_code failed;
  writing_since_ = now();
  if (!queue_.empty()) {
    const WebSocketMessage& first = queue_.front();
    stream_.binary(first.binary);
    stream_.compress(!first.binary);
    co_await stream_.async_write(asio::buffer(first.bytes), asio::redirect_error(asio::use_awaitable, failed));
    queued -= cost(first);
    queue_.pop_front();
    changed();
  } else {
    ping_due_ = false;
    co_await stream_.async_ping({}, asio::redirect_error(asio::use_awaitable, failed));
    pinged_at_ = now();
  }
  writing_since_.reset();
  if (failed && !reading_) finish(end_of(failed), false);
  co_return !failed;
}

asio::awaitable<void> WebSocket::Impl::write_all_queued() {
  co_await asio::this_coro::throw_if_cancelled(false);
  while (!end) {
    if (!queue_.empty() || ping_due_) {
      bool written = co_await write_one();
      if (!written) co_return;
    } else if (goodbye_) {
      error_code failed;
      co_await stream_.async_close(*goodbye_, asio::redirect_error(asio::use_awaitable, failed));
      if (!failed || !reading_) finish(end_of(failed), false);
      co_return;
    } else {
      co_await wait(changed_);
    }
  }
}

void WebSocket::Impl::begin_close(std::uint16_t code, std::string reason) {
  if (end || goodbye_) return;
  reason.resize(std::min(reason.size(), kReasonBytesMax));
  while (!valid_utf8(reason)) reason.pop_back();
  goodbye_.emplace(static_cast<websocket::close_code>(code), reason.c_str());
  closing_since_ = now();
  changed();
}

// ---- time limits ----
asio::awaitable<void> WebSocket::Impl::watch() {
  const WebSocketLimits& limits = limits_;
  Duration shortest = std::min({limits.ping_after, limits.pong_timeout, limits.write_timeout, limits.close_timeout});
  while (!end) {
    tick_.expires_after(std::clamp(shortest / 4, kTickMin, kTickMax));
    co_await wait(tick_);
    if (!end) look(now());
  }
  // Beast's reader and closer can wait for each other: where the peer breaks the protocol just as this side closes.
  for (Moment stuck = now() + kStuck; running_ > 1;) {
    tick_.expires_after(kStuck);
    co_await wait(tick_);
    if (now() < stuck) continue;
    stop_reading_.emit(asio::cancellation_type::terminal);
    stop_writing_.emit(asio::cancellation_type::terminal);
  }
}

void WebSocket::Impl::look(Moment at) {
  if (!closing_since_ && !stream_.is_open()) closing_since_ = at;  // the reader answers the peer's close, or a mistake
  if (writing_since_ && at - std::max(*writing_since_, stream_.next_layer().last_write()) >= limits_.write_timeout)
    finish({Why::too_slow, kTooSlow, "the peer took nothing for too long"}, true);
  else if (closing_since_ && at - *closing_since_ >= limits_.close_timeout)
    give_up_closing();
  else if (!closing_since_)
    look_at_silence(at);
}

// Where the reader is what closes, it knows why, and ends as soon as the connection does.
void WebSocket::Impl::give_up_closing() {
  if (goodbye_ || !reading_)
    finish(end_of(asio::error::timed_out), true);
  else
    stream_.next_layer().cut();
}

// Where a message waits to be taken nobody reads, so nothing is known of the peer.
void WebSocket::Impl::look_at_silence(Moment at) {
  if (arrived_) waited_until_ = at;
  Moment heard = std::max(stream_.next_layer().last_read(), waited_until_);
  if (pinged_at_ && heard >= *pinged_at_) pinged_at_.reset();
  if (pinged_at_ && at - *pinged_at_ >= limits_.pong_timeout)
    finish({.why = Why::silent, .text = "the peer answers no ping"}, true);
  if (end || pinged_at_ || ping_due_ || writing_since_ || at - heard < limits_.ping_after) return;
  ping_due_ = true;
  changed();
}

// ---- what others hold ----
WebSocket::WebSocket(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
WebSocket::WebSocket(WebSocket&& other) noexcept = default;
WebSocket& WebSocket::operator=(WebSocket&& other) noexcept {
  WebSocket taken(std::move(other));
  std::swap(impl_, taken.impl_);
  return *this;
}
WebSocket::~WebSocket() {
  if (impl_) cut();
}

asio::awaitable<std::optional<WebSocketMessage>> WebSocket::receive() { return impl_->receive(); }
asio::awaitable<Status> WebSocket::send(WebSocketMessage message) { return impl_->send(std::move(message)); }
Status WebSocket::post(WebSocketMessage message) { return impl_->post(std::move(message)); }
size_t WebSocket::queued_bytes() const { return impl_->queued; }
void WebSocket::begin_close(std::uint16_t code, std::string reason) { impl_->begin_close(code, std::move(reason)); }
asio::awaitable<void> WebSocket::over() const { return impl_->over(); }
const std::optional<WebSocketEnd>& WebSocket::end() const { return impl_->end; }
void WebSocket::cut() { impl_->finish({.text = "dropped here"}, true); }

asio::awaitable<void> WebSocket::close(std::uint16_t code, std::string reason) {
  begin_close(code, std::move(reason));
  return impl_->over();
}

// A caller that is cancelled drops `made`, which ends whatever goes on.
asio::awaitable<Result<WebSocket>> accept_web_socket(SealedSocket socket, const Request& request, HeaderList headers,
                                                     WebSocketLimits limits, Duration patience) {
  auto impl = std::make_shared<WebSocket::Impl>(std::move(socket), limits);
  WebSocket made(impl);
  auto handshake = impl->accept(upgrade_request(request), std::move(headers), patience);
  CO_TRY(opened, co_await WebSocket::Impl::open(impl, std::move(handshake)));
  co_return std::move(made);
}

asio::awaitable<Result<WebSocket>> dial_web_socket(SealedSocket socket, WebSocketDial dial, WebSocketLimits limits) {
  auto impl = std::make_shared<WebSocket::Impl>(std::move(socket), limits);
  WebSocket made(impl);
  auto handshake = impl->dial(std::move(dial));
  CO_TRY(opened, co_await WebSocket::Impl::open(impl, std::move(handshake)));
  co_return std::move(made);
}

}  // namespace weir::net
