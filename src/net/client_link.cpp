#include "client_link.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace weir::net {

namespace asio = boost::asio;

namespace {

constexpr size_t kBufferBytes = 16 << 10;
constexpr int kSmallSendBuffer = 16 << 10;
constexpr Duration kResolverPatience = 300ms;  // where it is known what a name meant before

void append_line(std::string& to, std::string_view name, std::string_view value) {
  auto clean = [&](std::string_view text) {
    for (char c : text)
      if (c != '\r' && c != '\n' && c != '\0') to += c;
  };
  clean(name);
  to += ": ";
  clean(value);
  to += "\r\n";
}

std::string request_head(const BaseUrl& base, const ClientRequest& request) {
  std::string out = fmt::format("{} {}{} HTTP/1.1\r\nhost: {}\r\n", to_string(request.method), base.prefix,
                                request.target, base.name);
  bool streamed = request.upload.next != nullptr;
  if (streamed || !request.body.empty()) append_line(out, "content-type", request.content_type);
  if (streamed && !request.upload.bytes)
    append_line(out, "transfer-encoding", "chunked");
  else if (streamed || !request.body.empty() || !idempotent(request.method) || request.method == Method::put)
    append_line(out, "content-length", std::to_string(streamed ? *request.upload.bytes : request.body.size()));
  if (!request.bearer.empty()) append_line(out, "authorization", "Bearer " + request.bearer.reveal());
  for (const auto& [name, value] : request.headers) append_line(out, name, value);
  out += "\r\n";
  return out;
}

}  // namespace

// What the resolver found; shared with its thread's completion, which may come when nobody waits any more.
struct ClientLink::Resolution {
  bool done = false;
  error_code failed;
  std::vector<tcp::endpoint> endpoints;
};

ClientLink::ClientLink(asio::io_context& io, std::shared_ptr<BaseUrl> to, std::shared_ptr<const TlsTrust> trust,
                       bool forget_unsent)
    : base(std::move(to)),
      trust_(std::move(trust)),
      forget_unsent_(forget_unsent),
      socket_(tcp::socket(io)),
      timer_(io),
      resolver_(io) {}

// Moving the deadline costs nothing while the timer that is armed ends earlier.
void ClientLink::set_deadline(Duration from_now) {
  deadline_ = std::chrono::steady_clock::now() + std::min(from_now, kTimeoutMax);
  if (!armed_ || timer_.expiry() > deadline_) arm();
}

void ClientLink::arm() {
  armed_ = true;
  timer_.expires_at(deadline_);
  timer_.async_wait([weak = weak_from_this(), round = ++rounds_](error_code) {
    auto self = weak.lock();
    if (!self || round != self->rounds_ || !self->armed_) return;
    if (std::chrono::steady_clock::now() < self->deadline_) return self->arm();
    self->armed_ = false;
    self->expired = true;
    self->socket_.close();
  });
}

void ClientLink::disarm() {
  armed_ = false;
  timer_.cancel();
}

bool ClientLink::readable() {
  char byte = 0;
  ssize_t got = ::recv(socket_.raw().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

Error ClientLink::broken(std::string_view doing, const error_code& failed) const {
  if (expired)
    return Error{Errc::unavailable, "timeout", fmt::format("{} did not answer in time", base->name)};
  if (failed == asio::error::operation_aborted)
    return Error{Errc::unavailable, "cancelled", fmt::format("the request to {} was cancelled", base->name)};
  return Error{Errc::unavailable, "unreachable",
               fmt::format("cannot {} {}: {}", doing, base->name, failed.message())};
}

// An answer of the resolver that comes when nobody waits any more is kept for the next connection.
std::shared_ptr<ClientLink::Resolution> ClientLink::look_up() {
  auto found = std::make_shared<Resolution>();
  auto address = asio::ip::make_address(base->host, found->failed);
  if (!found->failed) {
    found->done = true;
    found->endpoints.emplace_back(address, static_cast<std::uint16_t>(std::stoi(base->port)));
    return found;
  }
  auto heard = [found, to = base, weak = weak_from_this()](error_code failed, const auto& results) {
    found->done = true;
    found->failed = failed;
    for (const auto& each : results) found->endpoints.push_back(each.endpoint());
    if (!found->endpoints.empty()) to->known = found->endpoints;
    if (auto waiting = weak.lock()) waiting->timer_.cancel();
  };
  resolver_.async_resolve(base->host, base->port, std::move(heard));
  return found;
}

// The resolver's thread cannot be interrupted, so its answer is waited for on the timer, which can.
asio::awaitable<Status> ClientLink::wait_for(const Resolution& found, Duration patience) {
  if (found.done) co_return ok();
  auto until = std::min(deadline_, std::chrono::steady_clock::now() + patience);
  disarm();
  timer_.expires_at(until);
  co_await wait(timer_);
  auto now = std::chrono::steady_clock::now();
  expired = !found.done && now >= deadline_;
  if (!found.done && (expired || now < until)) co_return broken("resolve", asio::error::operation_aborted);
  arm();
  co_return ok();
}

// The first that accepts.
asio::awaitable<void> ClientLink::dial(std::vector<tcp::endpoint> endpoints, error_code& failed) {
  for (const tcp::endpoint& each : endpoints) {
    error_code ignored;
    tcp::socket& socket = socket_.raw();
    socket.close(ignored);
    failed.clear();
    open_private(socket, each.protocol(), failed);
    if (!failed && forget_unsent_) {
      socket.set_option(asio::socket_base::linger(true, 0), ignored);
      socket.set_option(asio::socket_base::send_buffer_size(kSmallSendBuffer), ignored);
    }
    if (!failed) co_await connect(socket, each, failed);
    if (!failed || expired || failed == asio::error::operation_aborted) break;
  }
}

// A resolver that is away must not take a healthy service with it: the addresses that the name had before count then,
// for as long as a server accepts there.
asio::awaitable<Status> ClientLink::open() {
  std::vector<tcp::endpoint> known = base->known;
  auto found = look_up();
  error_code failed = asio::error::host_not_found;
  if (!known.empty()) {
    CO_TRY(waited, co_await wait_for(*found, kResolverPatience));
    if (!found->done || found->failed) co_await dial(std::move(known), failed);
  }
  if (failed && failed != asio::error::operation_aborted && !expired) {
    CO_TRY(waited, co_await wait_for(*found, kTimeoutMax));
    if (found->failed) co_return broken("resolve", found->failed);
    co_await dial(found->endpoints, failed);
  }
  if (failed || expired) co_return broken("reach", failed);
  prepare(socket_.raw());
  if (base->tls) co_return co_await shake_hands();
  co_return ok();
}

asio::awaitable<Status> ClientLink::shake_hands() {
  socket_.speak(std::make_unique<TlsSession>(*trust_, base->host));
  error_code failed;
  Status trusted = co_await socket_.shake_hands(failed);
  if (trusted && (failed == asio::error::eof || failed == asio::error::connection_reset))
    trusted = Error{Errc::unavailable, "tls_not_spoken",
                    "it closed the connection within the TLS handshake: does it speak TLS there?"};
  if (trusted && failed) co_return broken("shake hands with", failed);
  if (trusted) co_return ok();
  Error error = std::move(trusted).error();
  error.message = fmt::format("cannot trust {}: {}", base->name, error.message);
  co_return error;
}

asio::awaitable<Status> ClientLink::write(const ClientRequest& request) {
  std::string head = request_head(*base, request);
  co_return co_await write_bytes(head, request.body, request.write_by);
}

asio::awaitable<Status> ClientLink::write_part(std::string_view head, std::string_view body) {
  return write_bytes(head, body, std::nullopt);
}

asio::awaitable<Status> ClientLink::write_bytes(std::string_view head, std::string_view body,
                                                std::optional<Instant> write_by) {
  error_code failed;
  co_await socket_.write_all(head, body, failed, write_by.value_or(Instant::max()));
  if (failed == asio::error::timed_out && write_by && boot_now() >= *write_by)
    co_return Error{Errc::unavailable, "deadline_passed",
                    fmt::format("the time to write to {} had passed", base->name)};
  if (failed) co_return broken("write to", failed);
  co_return ok();
}

ClientLink::Released ClientLink::release() {
  auto left = std::chrono::duration_cast<Duration>(deadline_ - std::chrono::steady_clock::now());
  disarm();
  return {std::move(socket_), std::max(left, Duration(1))};
}

// Reads once; what came is added to `unread`. `ended`: the server has said all.
asio::awaitable<Status> ClientLink::receive(bool& ended) {
  size_t before = unread.size();
  unread.resize(before + kBufferBytes);
  error_code failed;
  size_t got = co_await socket_.read_some(unread.data() + before, kBufferBytes, failed);
  unread.resize(before + got);
  ended = failed == asio::error::eof;
  if (socket_.problem()) co_return *socket_.problem();
  if (failed && !ended) co_return broken("read from", failed);
  co_return ok();
}

asio::awaitable<Status> ClientLink::read_step(ResponseParser& parser) {
  bool ended = false;
  size_t before = unread.size();
  CO_TRY(received, co_await receive(ended));
  if (unread.size() > before) unread.erase(0, parser.feed(unread));
  if (ended && !parser.done()) parser.feed_end();
  if (parser.problem()) co_return *parser.problem();
  co_return ok();
}

}  // namespace weir::net
