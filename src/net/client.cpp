#include "weir/net/client.hpp"

#include "client_bodies.hpp"
#include "event_reader.hpp"
#include "web_socket_open.hpp"

#include <algorithm>

namespace weir::net {

namespace asio = boost::asio;

namespace {
constexpr size_t kIdleMax = 64;
constexpr size_t kRefusalBytesMax = 16 << 10;

// Called once for each answer: the caller's function may read the answer.
bool usable(const ClientRequest& request, const ClientResponse& response) {
  bool good = !request.usable || request.usable(response);
  return good && response.status < 500;
}

bool streams(const ClientRequest& request) { return request.upload.next || request.sink; }

Status check(const ClientRequest& request) {
  bool clean = request.target.starts_with('/') && request.method != Method::other;
  for (unsigned char c : request.target) clean = clean && c > 0x20 && c != 0x7F;
  if (!clean) return Error{Errc::invalid, "bad_target", "a request's target must be an encoded path and query"};
  return ok();
}
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
    bool own = false;  // the failure is the caller's source's or sink's: it says nothing about the address
  };
  asio::awaitable<Attempt> exchange(const ClientRequest& request, ClientLinkPtr link);
  static asio::awaitable<Result<WebSocket>> web_socket(std::shared_ptr<State> self, ClientRequest request,
                                                       WebSocketLimits limits);
  asio::awaitable<Status> follow_once(const ClientRequest& request, Duration silence,
                                      const std::function<bool(const StreamedEvent&)>& each);
  asio::awaitable<Status> read_events(ClientLink& link, ResponseParser& parser, Duration silence,
                                      const std::function<bool(const StreamedEvent&)>& each);
  ClientLinkPtr new_link() { return std::make_shared<ClientLink>(io, bases[at], trust, options.forget_unsent); }
  ClientLinkPtr take_idle();
  void leave(const ClientLink& link);
  void keep(ClientLinkPtr link, const ResponseParser& parser);
  Status trust_for(const BaseUrls& wanted);

  asio::io_context& io;
  BaseUrls bases;
  size_t at = 0;  // the address that is asked
  const ClientOptions options;
  std::shared_ptr<const TlsTrust> trust;  // where an address wants TLS
  std::vector<ClientLinkPtr> idle;  // to that address
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
ClientLinkPtr HttpClient::State::take_idle() {
  while (!idle.empty()) {
    ClientLinkPtr link = std::move(idle.back());
    idle.pop_back();
    if (!link->still_good()) continue;
    link->reused = true;
    return link;
  }
  return nullptr;
}

// An address that failed is not asked next, where there is another, and the connections kept to it are closed. Where
// it is the only address, only this connection ends: the failure says nothing about its other connections.
void HttpClient::State::leave(const ClientLink& link) {
  std::erase_if(idle, [&](const ClientLinkPtr& each) { return each.get() == &link; });
  if (bases[at] != link.base || bases.size() == 1) return;
  at = (at + 1) % bases.size();
  idle.clear();
}

void HttpClient::State::keep(ClientLinkPtr link, const ResponseParser& parser) {
  link->disarm();
  if (bases[at] != link->base) return;
  if (!parser.keep_alive() || !link->unread.empty() || link->expired || idle.size() >= kIdleMax) return;
  idle.push_back(std::move(link));
}

// ---- one question, one answer ----
asio::awaitable<HttpClient::State::Attempt> HttpClient::State::exchange(const ClientRequest& request,
                                                                        ClientLinkPtr link) {
  bool untouched = true;  // no byte of an answer has come
  auto failed = [&](Error error) {
    bool lost = !link->expired && error.reason != "cancelled" && error.reason != "deadline_passed";
    return Attempt{std::move(error),
                   link->reused && untouched && lost && (idempotent(request.method) || request.replayable)};
  };
  if (!link->reused) {
    Status opened = co_await link->open();
    if (!opened) co_return Attempt{std::move(opened).error()};
  }
  Status written = co_await link->write(request);
  if (!written) co_return failed(std::move(written).error());
  size_t bytes_max = request.sink ? request.sink_bytes_max : options.answer_bytes_max;
  auto parser = std::make_unique<ResponseParser>(bytes_max, request.method == Method::head);
  bool whole = true;
  if (request.upload.next) {
    Uploaded uploaded = co_await upload_body(request, *link, *parser);
    Passed& passed = uploaded.passed;
    if (!passed.status) co_return Attempt{std::move(passed.status).error(), false, passed.own};
    whole = uploaded.whole;
  }
  for (;;) {
    // "100 Continue" and its like come before the answer.
    if (parser->done() && parser->response().status / 100 == 1) {
      parser = std::make_unique<ResponseParser>(bytes_max, request.method == Method::head);
      link->unread.erase(0, parser->feed(link->unread));
      if (parser->problem()) co_return failed(*parser->problem());
      continue;
    }
    Passed poured = co_await pour(request, *link, *parser);
    if (!poured.status) co_return Attempt{std::move(poured.status).error(), false, poured.own};
    if (parser->done()) break;
    if (streams(request)) link->set_deadline(request.timeout);
    Status step = co_await link->read_step(*parser);
    if (!step) {
      untouched = untouched && link->unread.empty() && !parser->header_done();
      co_return failed(std::move(step).error());
    }
    untouched = false;
  }
  ClientResponse response = std::move(parser->response());
  if (whole) keep(std::move(link), *parser);
  co_return Attempt{std::move(response)};
}

asio::awaitable<Result<ClientResponse>> HttpClient::State::send(std::shared_ptr<State> self, ClientRequest request) {
  CO_TRY(clean, check(request));
  try {
    auto deadline = std::chrono::steady_clock::now() + std::min(request.timeout, kTimeoutMax);
    ClientLinkPtr link;
    if (!streams(request)) link = self->take_idle();
    if (!link) link = self->new_link();
    link->set_deadline(request.timeout);
    Attempt attempt = co_await self->exchange(request, link);
    if (attempt.retry) {
      link = self->new_link();
      link->set_deadline(std::chrono::duration_cast<Duration>(deadline - std::chrono::steady_clock::now()));
      attempt = co_await self->exchange(request, link);
    }
    const auto& result = attempt.result;
    bool given_up = !result && (attempt.own || result.error().reason == "cancelled" ||
                                result.error().reason == "deadline_passed");
    // Where one kept connection fell silent, those that are as old have probably fallen silent too.
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

// ---- WebSockets ----
asio::awaitable<Result<WebSocket>> HttpClient::web_socket(ClientRequest request, WebSocketLimits limits) {
  return State::web_socket(state_, std::move(request), limits);
}

asio::awaitable<Result<WebSocket>> HttpClient::State::web_socket(std::shared_ptr<State> self, ClientRequest request,
                                                                 WebSocketLimits limits) {
  CO_TRY(clean, check(request));
  ClientLinkPtr link = self->new_link();
  try {
    link->set_deadline(request.timeout);
    Status opened = co_await link->open();
    if (!opened) {
      if (opened.error().reason != "cancelled") self->leave(*link);
      co_return std::move(opened).error();
    }
    ClientLink::Released released = link->release();
    WebSocketDial dial;
    dial.name = link->base->name;
    dial.target = link->base->prefix + request.target;
    dial.headers = std::move(request.headers);
    if (!request.bearer.empty()) dial.headers.emplace_back("authorization", "Bearer " + request.bearer.reveal());
    dial.patience = released.left;
    auto made = co_await dial_web_socket(std::move(released.socket), std::move(dial), limits);
    bool elsewhere = !made && (made.error().code == Errc::unavailable || made.error().code == Errc::internal);
    if (elsewhere && made.error().reason != "cancelled") self->leave(*link);
    co_return std::move(made);
  } catch (const boost::system::system_error& e) {
    co_return Error{Errc::unavailable, "cancelled", fmt::format("the connection to {} was given up", link->base->name)};
  } catch (const std::exception& e) {
    co_return Error{Errc::internal, "internal", fmt::format("no WebSocket could be opened: {}", e.what())};
  }
}

// ---- streams ----
asio::awaitable<Status> HttpClient::State::read_events(ClientLink& link, ResponseParser& parser, Duration silence,
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
    Status step = co_await link.read_step(parser);
    if (!step && link.expired)
      co_return Error{Errc::unavailable, "stream_silent", fmt::format("{} has gone silent", link.base->name)};
    if (!step) co_return std::move(step).error();
  }
}

asio::awaitable<Status> HttpClient::State::follow_once(const ClientRequest& request, Duration silence,
                                                       const std::function<bool(const StreamedEvent&)>& each) {
  ClientLinkPtr link = new_link();
  link->set_deadline(request.timeout);
  Status step = co_await link->open();
  if (step) step = co_await link->write(request);
  ResponseParser parser(SIZE_MAX, false);
  while (step && !parser.header_done()) step = co_await link->read_step(parser);
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
  while (step && !parser.done() && parser.response().body.size() < kRefusalBytesMax)
    step = co_await link->read_step(parser);
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

}  // namespace weir::net
