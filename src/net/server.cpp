#include "weir/net/server.hpp"

#include "connection.hpp"
#include "weir/base/log.hpp"
#include "weir/base/log_limit.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/this_coro.hpp>

#include <charconv>

namespace weir::net {

namespace asio = boost::asio;

namespace {
constexpr size_t kRefusalsMax = 64;         // connections above the limit that are told so at the same time
constexpr Duration kAcceptPause = 50ms;     // after running out of descriptors
constexpr int kPortsTried = 64, kPortsTriedDown = 7;
constexpr Duration kSweepMax = 1s, kSweepMin = 10ms;
constexpr Duration kGraceMax = 24h;         // "for ever" must not overflow

Error address_error(std::string_view address, std::string_view problem) {
  return Error{Errc::invalid, "bad_address",
               fmt::format("listen address \"{}\": {}", address, problem), {{"field", "listen"}}};
}

Result<tcp::endpoint> parse_address(std::string_view text) {
  constexpr std::string_view kShape = "must look like 127.0.0.1:8080 or [::1]:8080";
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return address_error(text, kShape);
  std::string_view host = text.substr(0, colon), digits = text.substr(colon + 1);
  unsigned port = 0;
  auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (bad != std::errc() || end != digits.data() + digits.size() || port > 65535)
    return address_error(text, "the port must be between 0 and 65535");
  bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host == "localhost") host = "127.0.0.1";
  error_code failed;
  auto address = asio::ip::make_address(std::string(host), failed);
  if (failed || address.is_v6() != bracketed) return address_error(text, kShape);
  return tcp::endpoint(address, static_cast<std::uint16_t>(port));
}

Error listen_error(std::string_view address, const error_code& failed) {
  if (failed == asio::error::address_in_use)
    return Error{Errc::conflict, "address_in_use",
                 fmt::format("cannot listen on {}: address in use; is another server running there?", address)};
  if (failed == asio::error::access_denied)
    return Error{Errc::forbidden, "address_forbidden",
                 fmt::format("cannot listen on {}: permission denied; ports below 1024 need root", address)};
  return Error{Errc::unavailable, "listen_failed", fmt::format("cannot listen on {}: {}", address, failed.message())};
}

// Coarse, and never coarser than a quarter of the shortest limit.
Duration sweep_period(const ServerLimits& limits) {
  Duration shortest = std::min({limits.read_timeout, limits.idle_timeout, limits.idle_when_full, limits.write_timeout});
  return std::clamp(shortest / 4, kSweepMin, kSweepMax);
}
}  // namespace

struct HttpServer::State : ServerShared {
  using ServerShared::ServerShared;

  static asio::awaitable<void> accept_loop(std::shared_ptr<State> self, std::shared_ptr<tcp::acceptor> acceptor);
  static asio::awaitable<void> sweep_loop(std::shared_ptr<State> self);
  static asio::awaitable<void> stop(std::shared_ptr<State> self, Duration grace);
  static void spawn(const std::shared_ptr<State>& self, asio::awaitable<void> loop, asio::cancellation_slot slot);

  void take(const std::shared_ptr<State>& self, tcp::socket socket);
  void for_each(void (Connection::*act)());
  void close_listeners();
  bool running() const { return !open.empty() || loops > 0; }

  std::shared_ptr<const TlsIdentity> identity;  // of new connections; none: they speak in the clear
  std::vector<std::shared_ptr<tcp::acceptor>> acceptors;
  Instant hard_end = Instant::max();  // when what still runs is cut off
  bool crowded = false;               // somebody was refused since the last sweep
  LogLimit refusals{5s};
};

HttpServer::HttpServer(asio::io_context& io, Clock& clock, const Router& router, ServerLimits limits,
                       std::function<void(const Finished&)> observer)
    : state_(std::make_shared<State>(io, clock, router, limits, std::move(observer))) {}

HttpServer::~HttpServer() {
  state_->stopping = true;
  state_->abandoned = true;
  state_->close_listeners();
  state_->for_each(&Connection::close_hard);
  asio::dispatch(state_->io, [state = state_] { state->wake_sweep.emit(asio::cancellation_type::all); });
}

void HttpServer::use(std::shared_ptr<const TlsIdentity> identity) { state_->identity = std::move(identity); }

Status HttpServer::listen(std::string_view address) {
  TRY(endpoint, parse_address(address));
  auto acceptor = std::make_shared<tcp::acceptor>(state_->io);
  error_code failed;
  open_private(*acceptor, endpoint.protocol(), failed);
  if (!failed) acceptor->set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed && endpoint.address().is_v6()) acceptor->set_option(asio::ip::v6_only(false), failed);
  if (!failed) acceptor->bind(endpoint, failed);
  if (!failed) acceptor->listen(asio::socket_base::max_listen_connections, failed);
  if (failed) return listen_error(address, failed);
  bool first = state_->acceptors.empty();
  state_->acceptors.push_back(acceptor);
  State::spawn(state_, State::accept_loop(state_, acceptor), {});
  if (first) State::spawn(state_, State::sweep_loop(state_), state_->wake_sweep.slot());
  return ok();
}

Status HttpServer::listen_from(std::string_view host, int port) {
  Status tried = listen(fmt::format("{}:{}", host, port));
  for (int next = port + 1; !tried && port != 0 && next < std::min(port + kPortsTried, 65536); ++next)
    tried = listen(fmt::format("{}:{}", host, next));
  return tried;
}

Status HttpServer::listen_down_from(std::string_view host, int port) {
  Status tried = listen(fmt::format("{}:{}", host, port));
  int last = std::max(port - kPortsTriedDown + 1, 1);
  for (int next = port - 1; !tried && next >= last; --next) tried = listen(fmt::format("{}:{}", host, next));
  if (tried || tried.error().reason != "address_in_use") return tried;
  return Error{Errc::conflict, "address_in_use",
               fmt::format("cannot listen on {}: the ports from {} down to {} are all in use", host, port, last)};
}

std::string HttpServer::address() const {
  if (state_->acceptors.empty()) return {};
  error_code failed;
  auto endpoint = state_->acceptors.front()->local_endpoint(failed);
  if (failed) return {};
  std::string host = endpoint.address().to_string();
  if (endpoint.address().is_v6()) host = fmt::format("[{}]", host);
  return fmt::format("{}:{}", host, endpoint.port());
}

size_t HttpServer::connections() const { return state_->open.size(); }

asio::awaitable<void> HttpServer::stop(Duration grace) { return State::stop(state_, grace); }

void HttpServer::State::spawn(const std::shared_ptr<State>& self, asio::awaitable<void> loop,
                              asio::cancellation_slot slot) {
  ++self->loops;
  auto ended = [self](std::exception_ptr thrown) {
    --self->loops;
    self->note_end();
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
      log::error("http.loop_failed", "a loop of the server ended by an exception").with("what", e.what());
    }
  };
  asio::co_spawn(self->io, std::move(loop), asio::bind_cancellation_slot(slot, std::move(ended)));
}

asio::awaitable<void> HttpServer::State::accept_loop(std::shared_ptr<State> self,
                                                     std::shared_ptr<tcp::acceptor> acceptor) {
  while (!self->stopping) {
    error_code failed;
    tcp::socket socket = co_await accept(*acceptor, failed);
    if (self->stopping) co_return;
    if (!failed) {
      self->take(self, std::move(socket));
    } else if (failed != asio::error::connection_aborted) {
      log::warn("http.accept_failed", "cannot take a connection").with("what", failed.message());
      co_await self->clock.wait(kAcceptPause);
    }
  }
}

void HttpServer::State::take(const std::shared_ptr<State>& self, tcp::socket socket) {
  bool full = open.size() >= limits.connections_max;
  crowded |= full;
  if (full)
    if (auto left_out = refusals.due(clock.now()))
      log::warn("http.full", "there are too many connections: further ones are refused")
          .with("connections_max", limits.connections_max)
          .with("left_out", *left_out);
  if (full && open.size() >= limits.connections_max + kRefusalsMax) return;
  auto tls = identity ? std::make_unique<TlsSession>(*identity) : nullptr;
  auto connection = std::make_shared<Connection>(self, SealedSocket(std::move(socket), std::move(tls)));
  connection->start(full ? Connection::Mode::refuse : Connection::Mode::serve);
}

asio::awaitable<void> HttpServer::State::sweep_loop(std::shared_ptr<State> self) {
  // Cancellation only wakes the sweep, so that it looks at its state anew.
  co_await asio::this_coro::throw_if_cancelled(false);
  Duration period = sweep_period(self->limits);
  while (!self->abandoned && !(self->stopping && self->open.empty())) {
    Instant next = std::min(self->clock.now() + period, self->hard_end);
    co_await self->clock.wait_until(next);
    if (self->abandoned) co_return;
    Instant now = self->clock.now();
    bool crowded = std::exchange(self->crowded, false);
    for (size_t i = 0; i < self->open.size(); ++i) self->open[i]->tend(now, crowded);
    if (now < self->hard_end) continue;
    self->hard_end = Instant::max();
    self->for_each(&Connection::close_hard);
  }
}

// Acting on a connection may end others, so each is held while it is asked.
void HttpServer::State::for_each(void (Connection::*act)()) {
  std::vector<std::weak_ptr<Connection>> all;
  all.reserve(open.size());
  for (Connection* each : open) all.push_back(each->weak_from_this());
  for (const auto& each : all)
    if (auto connection = each.lock()) (connection.get()->*act)();
}

void HttpServer::State::close_listeners() {
  error_code ignored;
  for (const auto& acceptor : acceptors) acceptor->close(ignored);
}

asio::awaitable<void> HttpServer::State::stop(std::shared_ptr<State> self, Duration grace) {
  self->stopping = true;
  self->close_listeners();
  self->hard_end = std::min(self->hard_end, self->clock.now() + std::min(grace, kGraceMax));
  self->for_each(&Connection::wind_down);
  self->wake_sweep.emit(asio::cancellation_type::all);
  bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  while (self->running()) {
    co_await wait(self->ended);
    // A caller that is cancelled has no more patience, but what runs must still end before this returns.
    auto cancelled = co_await asio::this_coro::cancellation_state;
    if (self->running() && cancelled.cancelled() != asio::cancellation_type::none)
      self->for_each(&Connection::close_hard);
  }
  co_await asio::this_coro::throw_if_cancelled(throws);
}

}  // namespace weir::net
