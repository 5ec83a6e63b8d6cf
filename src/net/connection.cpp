#include "connection.hpp"

#include "events.hpp"
#include "response_head.hpp"
#include "target.hpp"
#include "upload.hpp"
#include "weir/base/log.hpp"
#include "weir/base/random.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/this_coro.hpp>

#include <ctime>

namespace weir::net {

namespace asio = boost::asio;

namespace {
constexpr size_t kBufferBytes = 8 << 10;
constexpr size_t kBodyBufferBytes = 16 << 10;
constexpr Duration kLinger = 2s;

bool sane_request_id(std::string_view id) {
  return !id.empty() && id.size() <= 64 && std::ranges::all_of(id, [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' || c == '_' ||
           c == '-';
  });
}

Response refusal_response(const Refusal& refusal) {
  Errc code = refusal.status == 503 ? Errc::unavailable : Errc::invalid;
  Response response = Response::failure(Error{code, std::string(refusal.code), std::string(refusal.message)});
  response.status = refusal.status;
  return response;
}

Response route_failure(const Error& error, const Router& router, std::string_view raw_path) {
  Response response = Response::failure(error);
  if (error.reason != "method_not_allowed") return response;
  response.status = 405;
  response.headers.emplace_back("allow", router.allowed(raw_path));
  return response;
}

Response options_response(std::string allowed) {
  Response response;
  response.status = 204;
  response.headers.emplace_back("allow", std::move(allowed));
  return response;
}

bool accepts_type(std::string_view type, const StreamedBody* streamed) {
  if (streamed == nullptr) return same_ignoring_case(type, "application/json");
  return std::ranges::any_of(streamed->content_types, [&](const auto& each) { return same_ignoring_case(type, each); });
}

Error type_error(const StreamedBody* streamed) {
  std::string types = "application/json";
  if (streamed != nullptr) types = fmt::format("{}", fmt::join(streamed->content_types, " or "));
  return Error{Errc::unsupported, "unsupported_media_type", fmt::format("Content-Type: must be {}", types)};
}

std::optional<Error> body_problem(const Request& request, const StreamedBody* streamed) {
  if (request.body.empty() && streamed == nullptr) return std::nullopt;
  std::string_view encoding = request.header("content-encoding");
  if (!encoding.empty() && !same_ignoring_case(encoding, "identity"))
    return Error{Errc::unsupported, "unsupported_encoding", "Content-Encoding: a body is read only as it is"};
  if (request.method != Method::post && request.method != Method::put && request.method != Method::patch)
    return std::nullopt;
  std::string_view type = request.header("content-type");
  type = type.substr(0, type.find(';'));
  while (!type.empty() && type.back() == ' ') type.remove_suffix(1);
  if (request.headers.contains("content-type") && !accepts_type(type, streamed)) return type_error(streamed);
  return std::nullopt;
}

// An IPv4 client of a dual-stack listener reads as IPv4.
std::string remote_text(const tcp::socket& socket) {
  error_code failed;
  auto address = socket.remote_endpoint(failed).address();
  if (failed) return {};
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
  return address.to_string();
}
}  // namespace

bool is_cancellation(const std::exception_ptr& thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const boost::system::system_error& e) {
    return e.code() == asio::error::operation_aborted;
  } catch (...) {
  }
  return false;
}

std::string what(const std::exception_ptr& thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
  }
  return "unknown exception";
}

// ---- what all share ----
ServerShared::ServerShared(asio::io_context& on, Clock& with, const Router& routes, ServerLimits bounds,
                           std::function<void(const Finished&)> told)
    : io(on), clock(with), router(routes), limits(bounds), observer(std::move(told)),
      ended(on, asio::steady_timer::time_point::max()), id_prefix_(random_hex(4)) {}

void ServerShared::note_end() {
  if (!open.empty()) return;
  if (loops == 0) ended.cancel();
  if (stopping && !abandoned) wake_sweep.emit(asio::cancellation_type::all);
}

std::string_view ServerShared::date() {
  std::int64_t second = std::chrono::floor<std::chrono::seconds>(clock.wall()).time_since_epoch().count();
  if (second != date_second_) {
    date_second_ = second;
    std::time_t time = second;
    std::tm parts{};
    gmtime_r(&time, &parts);
    std::array<char, 64> text;
    date_.assign(text.data(), std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts));
  }
  return date_;
}

std::string ServerShared::next_request_id() { return fmt::format("{}{:08x}", id_prefix_, ++id_counter_); }

// ---- life ----
Connection::Connection(std::shared_ptr<ServerShared> shared, SealedSocket socket)
    : shared_(std::move(shared)), place_(shared_->open.size()), socket_(std::move(socket)),
      remote_(remote_text(socket_.raw())), parser_(shared_->limits),
      in_(kBufferBytes),
      stream_end_(shared_->io, asio::steady_timer::time_point::max()) {
  shared_->open.push_back(this);
  prepare(socket_.raw());
}

Connection::~Connection() {
  Connection* last = shared_->open.back();
  shared_->open[place_] = last;
  last->place_ = place_;
  shared_->open.pop_back();
  shared_->note_end();
}

void Connection::start(Mode mode) {
  auto self = shared_from_this();
  asio::co_spawn(socket_.get_executor(), run(self, mode),
                 asio::bind_cancellation_slot(cancel_.slot(), [self](std::exception_ptr thrown) {
                   if (thrown && !is_cancellation(thrown))
                     log::error("http.connection_failed", "a connection ended by an exception")
                         .with("what", what(thrown))
                         .with("remote", self->remote_);
                 }));
}

asio::awaitable<void> Connection::run(std::shared_ptr<Connection> self, Mode mode) {
  bool open = co_await self->greet();
  if (open && mode == Mode::refuse) {
    co_await self->refuse({503, "too_many_connections", "the server has too many connections; try again"});
  } else if (open) {
    // What has arrived already is read and answered without a wait: many requests at once would have the loop to
    // themselves.
    while (co_await self->serve_one()) {
      if (self->in_.begin < self->in_.end) co_await next_turn();
      if (self->shared_->abandoned) break;
    }
  }
  if ((self->refusal_ || self->unread_) && !self->shared_->abandoned) co_await self->linger();
  error_code ignored;
  if (!self->torn_) self->socket_.shutdown_send();
  self->socket_.raw().shutdown(tcp::socket::shutdown_both, ignored);
  self->socket_.close();
}

// Makes the handshake. False where nothing more is to be said.
asio::awaitable<bool> Connection::greet() {
  if (!socket_.sealed()) co_return true;
  enter(Phase::greeting, shared_->limits.read_timeout);
  error_code failed;
  Status shaken = co_await socket_.shake_hands(failed);
  if (shared_->abandoned) co_return false;
  if (shaken) co_return !failed;
  const Error& why = shaken.error();
  bool plain = why.reason == "tls_not_spoken";
  if (auto left_out = shared_->failed_handshakes.due(shared_->clock.now()))
    log::warn("http.handshake_failed", plain ? "a client spoke plain HTTP to a port that speaks TLS" : why.message)
        .with("remote", remote_)
        .with("left_out", *left_out);
  if (!plain) co_return false;
  // In its own words, because it would not understand others. A 503 condemns nothing that the client wanted.
  socket_.speak(nullptr);
  co_await refuse({503, "tls_required", "this port speaks TLS only: its address begins with https://"});
  co_return false;
}

asio::awaitable<void> Connection::refuse(Refusal why) {
  enter(Phase::writing, shared_->limits.write_timeout);
  parser_.reset(request_);
  identify();
  refusal_ = std::move(why);
  Response response = refusal_response(*refusal_);
  co_await write_response(response, false);
}

void Connection::enter(Phase phase, Duration limit) {
  phase_ = phase;
  deadline_ = shared_->clock.now() + limit;
}

void Connection::tend(Instant now, bool crowded) {
  if (phase_ == Phase::streaming) {
    if (events_) events_->tend(now);
    return;
  }
  if (phase_ == Phase::talking) {  // its handler goes on, though the connection is over
    if (now >= deadline_) stream_cancel_.emit(asio::cancellation_type::all);
    return;
  }
  const ServerLimits& limits = shared_->limits;
  Duration patience = phase_ == Phase::greeting ? limits.read_timeout : limits.idle_timeout;
  bool hurried = crowded && (phase_ == Phase::idle || phase_ == Phase::greeting) && limits.idle_when_full < patience;
  if (now < (hurried ? deadline_ - patience + limits.idle_when_full : deadline_)) return;
  if (phase_ != Phase::reading) return hang_up();
  error_code ignored;
  timed_out_ = true;  // the pending read fails, and its coroutine answers 408
  socket_.raw().cancel(ignored);
}

void Connection::hang_up() {
  if (phase_ == Phase::idle) socket_.shutdown_send();
  socket_.close();
}

void Connection::wind_down() {
  if (phase_ == Phase::idle || phase_ == Phase::greeting) hang_up();
  if (phase_ == Phase::streaming) stream_cancel_.emit(asio::cancellation_type::all);
  if (socket_talk_ != nullptr) socket_talk_->begin_close(1001, "the server stops");
}

void Connection::close_hard() {
  closed_hard_ = true;
  socket_.close();
  if (events_) events_->give_up();
  // Outside the loop Asio would queue a signal without keeping its owner alive; so the owner goes with it.
  asio::dispatch(socket_.get_executor(), [self = shared_from_this()] {
    if (self->socket_talk_ != nullptr) self->socket_talk_->cut();
    self->stream_cancel_.emit(asio::cancellation_type::all);
    self->cancel_.emit(asio::cancellation_type::all);
  });
}

// ---- reading ----
bool Connection::make_room() {
  if (in_.begin == in_.end) in_.begin = in_.end = 0;
  if (in_.end == 0 && in_.size > kBodyBufferBytes) {  // one long header does not cost its memory for ever
    in_ = Received(kBodyBufferBytes);
  }
  size_t wanted = parser_.header_done() ? kBodyBufferBytes : kBufferBytes;
  if (in_.end < in_.size && in_.size >= wanted) return true;
  size_t held = in_.end - in_.begin;
  // The parser leaves at most one header or one chunk's header unread; more than that cannot be a request.
  if (held > shared_->limits.header_bytes_max + kBufferBytes) return false;
  Received fresh(std::max(wanted, held * 2));
  std::copy_n(in_.bytes.get() + in_.begin, held, fresh.bytes.get());
  fresh.end = held;
  in_ = std::move(fresh);
  return true;
}

asio::awaitable<Connection::Read> Connection::read_request() {
  request_ = Request{};
  parser_.reset(request_);
  timed_out_ = continued_ = false;
  bool begun = false;
  enter(Phase::idle, shared_->limits.idle_timeout);
  for (;;) {
    // Some clients end a body with one line break too many.
    auto line_end = [](char c) { return c == '\r' || c == '\n'; };
    while (!begun && in_.begin < in_.end && line_end(in_.bytes[in_.begin])) ++in_.begin;
    if (in_.begin < in_.end) {
      if (!begun) {
        begun = true;
        enter(Phase::reading, shared_->limits.read_timeout);
        begun_ = deadline_ - shared_->limits.read_timeout;
      }
      bool in_header = !parser_.header_done();
      parse();
      if (in_header && parser_.header_done() && !parser_.done() && !parser_.refusal()) {
        bool streamed = begin_body();
        if (streamed) co_return parser_.refusal() ? refused() : Read::streamed;
        parse();
      }
      if (parser_.refusal()) co_return refused();
      if (parser_.done()) co_return Read::complete;
    }
    if (shared_->stopping && !begun) co_return Read::closed;
    Read more = co_await read_more();
    if (more != Read::complete) co_return more;
  }
}

void Connection::parse() {
  in_.begin += parser_.feed({in_.bytes.get() + in_.begin, in_.end - in_.begin});
}

Connection::Read Connection::refused() {
  refusal_ = parser_.refusal();
  return Read::refused;
}

// Reads once; `complete` where something came.
asio::awaitable<Connection::Read> Connection::read_more() {
  error_code failed;
  if (parser_.waits_for_continue() && !continued_) {
    continued_ = true;
    co_await socket_.write_all("HTTP/1.1 100 Continue\r\n\r\n", {}, failed);
  }
  if (!make_room()) {
    refusal_ = Refusal{400, "bad_request", "the request is malformed"};
    co_return Read::refused;
  }
  if (!failed) in_.end += co_await socket_.read_some(in_.bytes.get() + in_.end, in_.size - in_.end, failed);
  if (shared_->abandoned) co_return Read::closed;
  if (failed && timed_out_) {
    refusal_ = Refusal{408, "timeout", "the request did not arrive in time"};
    co_return Read::refused;
  }
  co_return failed ? Read::closed : Read::complete;
}

// How large the body may be depends on the route; whether the handler reads it, too.
bool Connection::begin_body() {
  std::uint64_t bytes_max = shared_->limits.body_bytes_max;
  bool streamed = false;
  if (shared_->router.has_streamed()) {
    if (auto target = split_target(parser_.raw_target())) {
      auto match = shared_->router.find(request_.method, target->raw_path, request_);
      streamed = match && match->body != nullptr;
      if (streamed) bytes_max = match->body->bytes_max;
    }
  }
  parser_.begin_body(bytes_max);
  return streamed;
}

// ---- answering ----
// Tells the observer, however the request ends.
struct Connection::Report {
  explicit Report(Connection& of) : connection(of) {}
  Report(const Report&) = delete;
  ~Report() {
    ServerShared& shared = *connection.shared_;
    if (shared.abandoned || !shared.observer) return;
    try {
      shared.observer({connection.request_.method, pattern, status, shared.clock.now() - connection.begun_});
    } catch (const std::exception& e) {
      log::error("http.observer_failed", "the server's observer threw").with("what", e.what());
    }
  }
  Connection& connection;
  std::string_view pattern = {};
  int status = 500;
};

void Connection::identify() {
  std::string_view given = request_.header("x-request-id");
  request_.request_id = sane_request_id(given) ? std::string(given) : shared_->next_request_id();
  request_.remote = remote_;
  request_.encrypted = socket_.sealed();
}

asio::awaitable<bool> Connection::serve_one() {
  Read read = co_await read_request();
  if (read == Read::closed) co_return false;
  identify();
  Report report(*this);
  Response response;
  if (read != Read::refused) response = co_await respond(report);
  if (refusal_) response = refusal_response(*refusal_);  // also of a body that a handler was reading
  if (response.status < 200 || response.status > 599) response.status = 500;
  if (response.socket) check_upgrade(response);
  report.status = response.status;
  if (shared_->abandoned) co_return false;
  enter(Phase::writing, shared_->limits.write_timeout);
  unread_ = read == Read::streamed && !parser_.done();
  bool keep_alive = read != Read::refused && !refusal_ && !unread_ && parser_.keep_alive() && !shared_->stopping;
  if (response.socket) {
    co_await run_socket(response);
    co_return false;
  }
  if (response.stream && request_.method != Method::head) {
    co_await run_stream(response);
    co_return false;
  }
  bool written = false;
  if (response.source.next) {
    keep_alive = keep_alive && (response.source.bytes || parser_.http11());  // else the end is told by closing
    written = co_await write_source(response, keep_alive);
  } else {
    written = co_await write_response(response, keep_alive);
  }
  co_return written && keep_alive && !shared_->abandoned;
}

// A handler to call, or the answer that makes a handler unnecessary.
struct Connection::Routed {
  std::optional<Router::Match> match = {};
  Response answer = {};
};

Connection::Routed Connection::route() {
  if (parser_.raw_target() == "*" && request_.method == Method::options)
    return {{}, options_response("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")};
  auto target = split_target(parser_.raw_target());
  if (!target) return {{}, Response::failure(target.error())};
  auto path = decode_text(target->raw_path);
  if (!path)
    return {{}, Response::failure(
                    target_error("path", "must be percent-encoded UTF-8 without control characters"))};
  request_.path = *std::move(path);
  if (auto query = read_query(target->raw_query, request_.query); !query)
    return {{}, Response::failure(query.error())};
  auto match = shared_->router.find(request_.method, target->raw_path, request_);
  if (!match && request_.method == Method::options && match.error().reason == "method_not_allowed")
    return {{}, options_response(shared_->router.allowed(target->raw_path))};
  if (!match) return {{}, route_failure(match.error(), shared_->router, target->raw_path)};
  if (auto problem = body_problem(request_, match->body)) return {*match, Response::failure(*problem)};
  return {*match, Response{.status = 0}};
}

asio::awaitable<Response> Connection::respond(Report& report) {
  phase_ = Phase::handling;
  deadline_ = Instant::max();
  Routed routed = route();
  if (routed.match) report.pattern = *routed.match->pattern;
  if (routed.answer.status != 0) co_return std::move(routed.answer);
  Upload upload(*this);
  if (routed.match->body != nullptr) request_.streamed = &upload;
  co_return co_await call_handler(*routed.match);
}

asio::awaitable<Response> Connection::call_handler(const Router::Match& match) {
  std::exception_ptr thrown;
  try {
    co_return co_await (*match.handler)(request_);
  } catch (...) {
    thrown = std::current_exception();
  }
  if (closed_hard_)
    co_return Response::failure(Error{Errc::unavailable, "stopping", "the server stopped before it could answer"});
  log::error("http.handler_failed", "a handler threw")
      .with("request_id", request_.request_id)
      .with("pattern", *match.pattern)
      .with("what", what(thrown));
  co_return Response::failure(Error{Errc::internal, "internal", "the server failed to answer; its log says why"});
}

// ---- writing ----
asio::awaitable<bool> Connection::write_response(Response& response, bool keep_alive) {
  if (response.stream) response.content_type = kEventStream;  // HEAD asked for what GET would stream
  bool bodiless = request_.method == Method::head || !has_body(response.status);
  head_.clear();
  write_head(head_, response,
             {.http11 = parser_.http11(), .keep_alive = keep_alive, .request_id = request_.request_id,
              .date = shared_->date()});
  error_code failed;
  co_await socket_.write_all(head_, bodiless ? std::string_view() : std::string_view(response.body), failed);
  co_return !failed;
}

// The answer must reach a client that is still sending: closing with unread bytes would reset the connection.
asio::awaitable<void> Connection::linger() {
  enter(Phase::lingering, kLinger);
  error_code failed;
  socket_.shutdown_send();
  while (!failed) co_await read_some(socket_.raw(), in_.bytes.get(), in_.size, failed);
}

}  // namespace weir::net
