#include "weir/net/client.hpp"

#include "base_url.hpp"
#include "event_reader.hpp"
#include "response_parser.hpp"
#include "socket_io.hpp"
#include "tls.hpp"
#include "weir/base/json.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace weir::net {

namespace asio = boost::asio;

namespace {
constexpr size_t kIdleMax = 64;
constexpr size_t kBufferBytes = 16 << 10;
constexpr int kSmallSendBuffer = 16 << 10;
constexpr Duration kTimeoutMax = 24h * 365;  // "for ever" must not overflow
constexpr Duration kResolverPatience = 300ms;  // where it is known what a name meant before

bool idempotent(Method method) { return method != Method::post && method != Method::patch; }

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
  if (!request.body.empty()) append_line(out, "content-type", "application/json");
  if (!request.body.empty() || !idempotent(request.method) || request.method == Method::put)
    append_line(out, "content-length", std::to_string(request.body.size()));
  if (!request.bearer.empty()) append_line(out, "authorization", "Bearer " + request.bearer.reveal());
  for (const auto& [name, value] : request.headers) append_line(out, name, value);
  out += "\r\n";
  return out;
}

// Called once an answer: whoever asked may read it there.
bool usable(const ClientRequest& request, const ClientResponse& response) {
  bool good = !request.usable || request.usable(response);
  return good && response.status < 500;
}

Status check(const ClientRequest& request) {
  bool clean = request.target.starts_with('/') && request.method != Method::other;
  for (unsigned char c : request.target) clean = clean && c > 0x20 && c != 0x7F;
  if (!clean) return Error{Errc::invalid, "bad_target", "a request's target must be an encoded path and query"};
  return ok();
}

// One connection to the server. Closed by its deadline; closed by its destructor.
struct Link : std::enable_shared_from_this<Link> {
  Link(asio::io_context& io, std::shared_ptr<BaseUrl> to)
      : base(std::move(to)), socket(io), timer(io), resolver(io) {}

  // Moving the deadline costs nothing while the timer that is armed ends earlier.
  void set_deadline(Duration from_now) {
    deadline = std::chrono::steady_clock::now() + std::min(from_now, kTimeoutMax);
    if (armed && timer.expiry() <= deadline) return;
    arm();
  }
  void arm() {
    armed = true;
    timer.expires_at(deadline);
    timer.async_wait([weak = weak_from_this(), round = ++rounds](error_code) {
      auto self = weak.lock();
      if (!self || round != self->rounds || !self->armed) return;
      if (std::chrono::steady_clock::now() < self->deadline) return self->arm();
      self->armed = false;
      self->expired = true;
      error_code ignored;
      self->socket.close(ignored);
    });
  }
  void disarm() {
    armed = false;
    timer.cancel();
  }
  // A server that has closed, or that talks without being asked, is of no more use.
  bool still_good() {
    char byte = 0;
    ssize_t got = ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }

  const std::shared_ptr<BaseUrl> base;
  tcp::socket socket;
  asio::steady_timer timer;
  tcp::resolver resolver;
  std::chrono::steady_clock::time_point deadline{};
  std::uint64_t rounds = 0;
  bool armed = false;
  bool expired = false;
  bool reused = false;
  // Received, decrypted and not yet parsed.
  std::string unread;
  std::unique_ptr<TlsSession> tls;
};
using LinkPtr = std::shared_ptr<Link>;

// What the resolver found; shared with its thread's completion, which may come after everybody has left.
struct Resolution {
  bool done = false;
  error_code failed;
  std::vector<tcp::endpoint> endpoints;
};
}  // namespace

struct HttpClient::State {
  State(asio::io_context& on, BaseUrls to, ClientOptions chosen)
      : io(on), bases(std::move(to)), options(std::move(chosen)) {}

  static asio::awaitable<Result<ClientResponse>> send(std::shared_ptr<State> self, ClientRequest request);
  static asio::awaitable<Status> follow(std::shared_ptr<State> self, ClientRequest request, Duration silence,
                                        std::function<bool(const StreamedEvent&)> each);

  struct Attempt {
    Result<ClientResponse> result;
    bool retry = false;
  };
  asio::awaitable<Attempt> exchange(const ClientRequest& request, LinkPtr link);
  asio::awaitable<Status> open(Link& link);
  asio::awaitable<Status> shake_hands(Link& link);
  static std::shared_ptr<Resolution> look_up(Link& link);
  asio::awaitable<Status> wait_for(Link& link, const Resolution& found, Duration patience);
  asio::awaitable<void> dial(Link& link, std::vector<tcp::endpoint> endpoints, error_code& failed);
  asio::awaitable<Status> write(Link& link, const ClientRequest& request);
  asio::awaitable<Status> receive(Link& link, bool& ended);
  asio::awaitable<Status> read_step(Link& link, ResponseParser& parser);
  asio::awaitable<Status> follow_once(const ClientRequest& request, Duration silence,
                                      const std::function<bool(const StreamedEvent&)>& each);
  asio::awaitable<Status> read_events(Link& link, ResponseParser& parser, Duration silence,
                                      const std::function<bool(const StreamedEvent&)>& each);
  LinkPtr new_link() { return std::make_shared<Link>(io, bases[at]); }
  LinkPtr take_idle();
  void leave(const Link& link);
  void keep(LinkPtr link, const ResponseParser& parser);
  Error broken(const Link& link, std::string_view doing, const error_code& failed) const;
  Status trust_for(const BaseUrls& wanted);

  asio::io_context& io;
  BaseUrls bases;
  size_t at = 0;  // the address that is asked
  const ClientOptions options;
  std::shared_ptr<const TlsTrust> trust;  // where an address wants TLS
  std::vector<LinkPtr> idle;  // to that address
};

Result<HttpClient> HttpClient::create(asio::io_context& io, std::string_view base_url, ClientOptions options) {
  TRY(bases, parse_bases(base_url));
  auto state = std::make_shared<State>(io, std::move(bases), std::move(options));
  TRY(trusted, state->trust_for(state->bases));
  return HttpClient(std::move(state));
}

// Authorities are read when the first address wants them.
Status HttpClient::State::trust_for(const BaseUrls& wanted) {
  if (trust || std::ranges::none_of(wanted, [](const auto& base) { return base->tls; })) return ok();
  TRY(loaded, TlsTrust::load(options.ca_file));
  trust = std::move(loaded);
  return ok();
}

HttpClient::HttpClient(std::shared_ptr<State> state) : state_(std::move(state)) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

asio::awaitable<Result<ClientResponse>> HttpClient::send(ClientRequest request) {
  return State::send(state_, std::move(request));
}

asio::awaitable<Status> HttpClient::follow(ClientRequest request, Duration silence,
                                           std::function<bool(const StreamedEvent&)> each) {
  return State::follow(state_, std::move(request), silence, std::move(each));
}

Status HttpClient::use(std::string_view base_urls) {
  TRY(bases, parse_bases(base_urls));
  TRY(trusted, state_->trust_for(bases));
  auto same = [](const auto& a, const auto& b) { return a->same(*b); };
  if (std::ranges::equal(bases, state_->bases, same)) return ok();  // the one that answers is kept
  for (auto& base : bases)
    for (const auto& before : state_->bases)
      if (base->same(*before)) base->known = before->known;
  state_->bases = std::move(bases);
  state_->at = 0;
  state_->idle.clear();
  return ok();
}

void HttpClient::close_idle() { state_->idle.clear(); }

// ---- connections ----
LinkPtr HttpClient::State::take_idle() {
  while (!idle.empty()) {
    LinkPtr link = std::move(idle.back());
    idle.pop_back();
    if (!link->still_good()) continue;
    link->reused = true;
    return link;
  }
  return nullptr;
}

// Whoever failed is not asked next, where there is another; what is kept to it is not trusted any more. Where there is
// none, only its connection ends: what it says, or that it takes no more, is nothing against the others.
void HttpClient::State::leave(const Link& link) {
  std::erase_if(idle, [&](const LinkPtr& each) { return each.get() == &link; });
  if (bases[at] != link.base || bases.size() == 1) return;
  at = (at + 1) % bases.size();
  idle.clear();
}

void HttpClient::State::keep(LinkPtr link, const ResponseParser& parser) {
  link->disarm();
  if (bases[at] != link->base) return;
  if (!parser.keep_alive() || !link->unread.empty() || link->expired || idle.size() >= kIdleMax) return;
  idle.push_back(std::move(link));
}

Error HttpClient::State::broken(const Link& link, std::string_view doing, const error_code& failed) const {
  if (link.expired)
    return Error{Errc::unavailable, "timeout", fmt::format("{} did not answer in time", link.base->name)};
  if (failed == asio::error::operation_aborted)
    return Error{Errc::unavailable, "cancelled", fmt::format("the request to {} was cancelled", link.base->name)};
  return Error{Errc::unavailable, "unreachable",
               fmt::format("cannot {} {}: {}", doing, link.base->name, failed.message())};
}

// An answer that comes when nobody waits any more is there for the next connection.
std::shared_ptr<Resolution> HttpClient::State::look_up(Link& link) {
  auto found = std::make_shared<Resolution>();
  auto address = asio::ip::make_address(link.base->host, found->failed);
  if (!found->failed) {
    found->done = true;
    found->endpoints.emplace_back(address, static_cast<std::uint16_t>(std::stoi(link.base->port)));
    return found;
  }
  auto heard = [found, base = link.base, weak = link.weak_from_this()](error_code failed, const auto& results) {
    found->done = true;
    found->failed = failed;
    for (const auto& each : results) found->endpoints.push_back(each.endpoint());
    if (!found->endpoints.empty()) base->known = found->endpoints;
    if (auto waiting = weak.lock()) waiting->timer.cancel();
  };
  link.resolver.async_resolve(link.base->host, link.base->port, std::move(heard));
  return found;
}

// The resolver's thread cannot be interrupted, so its answer is waited for on the timer, which can.
asio::awaitable<Status> HttpClient::State::wait_for(Link& link, const Resolution& found, Duration patience) {
  if (found.done) co_return ok();
  auto until = std::min(link.deadline, std::chrono::steady_clock::now() + patience);
  link.disarm();
  link.timer.expires_at(until);
  co_await wait(link.timer);
  auto now = std::chrono::steady_clock::now();
  link.expired = !found.done && now >= link.deadline;
  if (!found.done && (link.expired || now < until)) co_return broken(link, "resolve", asio::error::operation_aborted);
  link.arm();
  co_return ok();
}

// The first that accepts.
asio::awaitable<void> HttpClient::State::dial(Link& link, std::vector<tcp::endpoint> endpoints, error_code& failed) {
  for (const tcp::endpoint& each : endpoints) {
    error_code ignored;
    link.socket.close(ignored);
    failed.clear();
    open_private(link.socket, each.protocol(), failed);
    if (!failed && options.forget_unsent) {
      link.socket.set_option(asio::socket_base::linger(true, 0), ignored);
      link.socket.set_option(asio::socket_base::send_buffer_size(kSmallSendBuffer), ignored);
    }
    if (!failed) co_await connect(link.socket, each, failed);
    if (!failed || link.expired || failed == asio::error::operation_aborted) break;
  }
}

// A resolver that is away must not take a healthy service with it: what the name meant before counts then, for as long
// as somebody accepts there.
asio::awaitable<Status> HttpClient::State::open(Link& link) {
  std::vector<tcp::endpoint> known = link.base->known;
  auto found = look_up(link);
  error_code failed = asio::error::host_not_found;
  if (!known.empty()) {
    CO_TRY(waited, co_await wait_for(link, *found, kResolverPatience));
    if (!found->done || found->failed) co_await dial(link, std::move(known), failed);
  }
  if (failed && failed != asio::error::operation_aborted && !link.expired) {
    CO_TRY(waited, co_await wait_for(link, *found, kTimeoutMax));
    if (found->failed) co_return broken(link, "resolve", found->failed);
    co_await dial(link, found->endpoints, failed);
  }
  if (failed || link.expired) co_return broken(link, "reach", failed);
  prepare(link.socket);
  if (link.base->tls) co_return co_await shake_hands(link);
  co_return ok();
}

asio::awaitable<Status> HttpClient::State::shake_hands(Link& link) {
  link.tls = std::make_unique<TlsSession>(trust, link.base->host);
  auto named = [&](Error error) {
    error.message = fmt::format("cannot trust {}: {}", link.base->name, error.message);
    return error;
  };
  std::string received(kBufferBytes, '\0');
  for (;;) {
    Status step = link.tls->shake_hands();
    error_code failed;
    std::string output = link.tls->take_output();  // where it failed, an alert that tells the server why
    co_await write_all(link.socket, output, {}, failed);
    if (!step) co_return named(std::move(step).error());
    if (failed) co_return broken(link, "write to", failed);
    if (link.tls->established()) co_return ok();
    size_t got = co_await read_some(link.socket, received.data(), received.size(), failed);
    if (failed == asio::error::eof || failed == asio::error::connection_reset)
      co_return named({Errc::unavailable, "tls_not_spoken",
                       "it closed the connection within the TLS handshake: does it speak TLS there?"});
    if (failed) co_return broken(link, "read from", failed);
    link.tls->feed(std::string_view(received).substr(0, got));
  }
}

asio::awaitable<Status> HttpClient::State::write(Link& link, const ClientRequest& request) {
  std::string head = request_head(*link.base, request);
  std::string_view body = request.body;
  if (link.tls) {
    CO_TRY(encrypted, link.tls->encrypt(head, body));
    head = std::move(encrypted);
    body = {};
  }
  error_code failed;
  co_await write_all(link.socket, head, body, failed, request.write_by.value_or(Instant::max()));
  if (failed == asio::error::timed_out && request.write_by && boot_now() >= *request.write_by)
    co_return Error{Errc::unavailable, "deadline_passed",
                    fmt::format("the time to write to {} had passed", link.base->name)};
  if (failed) co_return broken(link, "write to", failed);
  co_return ok();
}

// Reads once; what came is added to `unread`. `ended`: the server has said all.
asio::awaitable<Status> HttpClient::State::receive(Link& link, bool& ended) {
  size_t before = link.unread.size();
  link.unread.resize(before + kBufferBytes);
  error_code failed;
  size_t got = co_await read_some(link.socket, link.unread.data() + before, kBufferBytes, failed);
  link.unread.resize(before + got);
  ended = failed == asio::error::eof;
  // Anybody on the way can end a connection; that of an encrypted answer is known only by the server's own word.
  if (ended && link.tls) co_return broken(link, "read from", asio::error::connection_reset);
  if (failed && !ended) co_return broken(link, "read from", failed);
  if (!link.tls) co_return ok();
  link.tls->feed(std::string_view(link.unread).substr(before));
  link.unread.resize(before);
  CO_TRY(decrypted, link.tls->decrypt(link.unread, ended));
  std::string reply = link.tls->take_output();  // to a change of keys
  co_await write_all(link.socket, reply, {}, failed);
  if (failed) co_return broken(link, "write to", failed);
  co_return ok();
}

asio::awaitable<Status> HttpClient::State::read_step(Link& link, ResponseParser& parser) {
  bool ended = false;
  size_t before = link.unread.size();
  CO_TRY(received, co_await receive(link, ended));
  if (link.unread.size() > before) link.unread.erase(0, parser.feed(link.unread));
  if (ended && !parser.done()) parser.feed_end();
  if (parser.problem()) co_return *parser.problem();
  co_return ok();
}

// ---- one question, one answer ----
asio::awaitable<HttpClient::State::Attempt> HttpClient::State::exchange(const ClientRequest& request, LinkPtr link) {
  bool untouched = true;  // no byte of an answer has come
  auto failed = [&](Error error) {
    bool lost = !link->expired && error.reason != "cancelled" && error.reason != "deadline_passed";
    return Attempt{std::move(error),
                   link->reused && untouched && lost && (idempotent(request.method) || request.replayable)};
  };
  if (!link->reused) {
    Status opened = co_await open(*link);
    if (!opened) co_return Attempt{std::move(opened).error()};
  }
  Status written = co_await write(*link, request);
  if (!written) co_return failed(std::move(written).error());
  auto parser = std::make_unique<ResponseParser>(options.answer_bytes_max, request.method == Method::head);
  while (!parser->done()) {
    Status step = co_await read_step(*link, *parser);
    if (!step) {
      untouched = untouched && link->unread.empty() && !parser->header_done();
      co_return failed(std::move(step).error());
    }
    untouched = false;
    // "100 Continue" and its like come before the answer.
    if (parser->done() && parser->response().status / 100 == 1) {
      parser = std::make_unique<ResponseParser>(options.answer_bytes_max, request.method == Method::head);
      link->unread.erase(0, parser->feed(link->unread));
      if (parser->problem()) co_return failed(*parser->problem());
    }
  }
  ClientResponse response = std::move(parser->response());
  keep(std::move(link), *parser);
  co_return Attempt{std::move(response)};
}

asio::awaitable<Result<ClientResponse>> HttpClient::State::send(std::shared_ptr<State> self, ClientRequest request) {
  CO_TRY(clean, check(request));
  try {
    auto deadline = std::chrono::steady_clock::now() + std::min(request.timeout, kTimeoutMax);
    LinkPtr link = self->take_idle();
    if (!link) link = self->new_link();
    link->set_deadline(request.timeout);
    Attempt attempt = co_await self->exchange(request, link);
    if (attempt.retry) {
      link = self->new_link();
      link->set_deadline(std::chrono::duration_cast<Duration>(deadline - std::chrono::steady_clock::now()));
      attempt = co_await self->exchange(request, link);
    }
    const auto& result = attempt.result;
    bool given_up = !result && (result.error().reason == "cancelled" || result.error().reason == "deadline_passed");
    // A kept connection that fell silent speaks against those that are as old as it.
    if (!result && !given_up && link->reused && link->base == self->bases[self->at]) self->idle.clear();
    if (result ? !usable(request, *result) : !given_up) self->leave(*link);
    co_return std::move(attempt.result);
  } catch (const boost::system::system_error& e) {
    co_return Error{Errc::unavailable, "cancelled",
                    fmt::format("the request to {} was cancelled", self->bases[self->at]->name)};
  } catch (const std::exception& e) {
    co_return Error{Errc::internal, "internal", fmt::format("the request failed: {}", e.what())};
  }
}

// ---- streams ----
asio::awaitable<Status> HttpClient::State::read_events(Link& link, ResponseParser& parser, Duration silence,
                                                       const std::function<bool(const StreamedEvent&)>& each) {
  EventReader reader(options.answer_bytes_max);
  for (;;) {
    std::string text = std::exchange(parser.response().body, {});
    if (!reader.feed(text, each)) {
      if (reader.too_large())
        co_return Error{Errc::too_large, "event_too_large", "an event of the stream is too large"};
      co_return ok();
    }
    if (parser.done()) co_return ok();
    link.set_deadline(silence);
    Status step = co_await read_step(link, parser);
    if (!step && link.expired)
      co_return Error{Errc::unavailable, "stream_silent", fmt::format("{} has gone silent", link.base->name)};
    if (!step) co_return std::move(step).error();
  }
}

asio::awaitable<Status> HttpClient::State::follow_once(const ClientRequest& request, Duration silence,
                                                       const std::function<bool(const StreamedEvent&)>& each) {
  LinkPtr link = new_link();
  link->set_deadline(request.timeout);
  Status step = co_await open(*link);
  if (step) step = co_await write(*link, request);
  ResponseParser parser(SIZE_MAX, false);
  while (step && !parser.header_done()) step = co_await read_step(*link, parser);
  if (!step) {
    leave(*link);
    co_return std::move(step).error();
  }
  bool stream = parser.response().status == 200;
  if (stream && !usable(request, parser.response())) {
    leave(*link);
    co_return Error{Errc::unavailable, "bad_answer", fmt::format("{} gives no stream of events", link->base->name)};
  }
  if (stream) {
    step = co_await read_events(*link, parser, silence, each);
    if (!step || parser.done()) leave(*link);  // a server that ends its streams is about to go
    co_return step;
  }
  // A refusal is short; what is longer than that is not read to its end.
  while (step && !parser.done() && parser.response().body.size() < kBufferBytes)
    step = co_await read_step(*link, parser);
  if (!usable(request, parser.response())) leave(*link);
  co_return response_error(parser.response());
}

asio::awaitable<Status> HttpClient::State::follow(std::shared_ptr<State> self, ClientRequest request, Duration silence,
                                                  std::function<bool(const StreamedEvent&)> each) {
  CO_TRY(clean, check(request));
  request.headers.emplace_back("accept", "text/event-stream");
  try {
    co_return co_await self->follow_once(request, silence, each);
  } catch (const boost::system::system_error& e) {
    co_return Error{Errc::unavailable, "cancelled",
                    fmt::format("the stream of {} was cancelled", self->bases[self->at]->name)};
  } catch (const std::exception& e) {
    co_return Error{Errc::internal, "internal", fmt::format("the stream failed: {}", e.what())};
  }
}

// ---- errors of the other side ----
namespace {
Errc errc_of(int status) {
  switch (status) {
    case 401: return Errc::unauthorized;
    case 403: return Errc::forbidden;
    case 404:
    case 405:
    case 410: return Errc::not_found;
    case 409:
    case 412: return Errc::conflict;
    case 413: return Errc::too_large;
    case 415: return Errc::unsupported;
    case 422: return Errc::unprocessable;
    case 429: return Errc::too_many;
    case 408:
    case 502:
    case 503:
    case 504: return Errc::unavailable;
    default: return status >= 400 && status < 500 ? Errc::invalid : Errc::internal;
  }
}
}  // namespace

Error response_error(const ClientResponse& response) {
  Error error{errc_of(response.status), fmt::format("http_{}", response.status),
              fmt::format("the server answered with status {}", response.status)};
  auto parsed = weir::json::parse_text(response.body);
  if (!parsed || !parsed->is_object()) return error;
  const auto* inner = parsed->get_object().if_contains("error");
  if (inner == nullptr || !inner->is_object()) return error;
  const auto& fields = inner->get_object();
  auto text = [&](std::string_view name, std::string& to) {
    const auto* v = fields.if_contains(name);
    if (v != nullptr && v->is_string()) to = std::string(v->get_string());
  };
  text("code", error.reason);
  text("message", error.message);
  if (const auto* details = fields.if_contains("details"); details != nullptr && details->is_object())
    error.details = details->get_object();
  return error;
}

bool says_nothing(const ClientResponse& refusal) {
  int status = refusal.status;
  if (status == 401 || status == 403 || status == 404) return true;
  return response_error(refusal).reason == fmt::format("http_{}", status);
}

}  // namespace weir::net
