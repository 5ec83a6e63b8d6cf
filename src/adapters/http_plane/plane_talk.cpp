#include "weir/http_plane/plane_talk.hpp"

#include "answer_fields.hpp"

#include "weir/base/log.hpp"

#include <fstream>

namespace weir::http_plane {

namespace asio = boost::asio;

namespace {

constexpr Duration kTokenLife = 15min;
constexpr Duration kBuyAgain = 5s;

json::object write_ask(const lease::Ask& ask, lease::Kind kind) {
  json::object out{{lease::id_field(kind), ask.subject.str()}};
  if (ask.version) out["version"] = ask.version->n;
  if (ask.rotate) out["rotate"] = true;
  if (!ask.key.empty()) out["key"] = ask.key;
  if (ask.avoid) out["avoid"] = true;
  return out;
}

Result<lease::Answer> read_answer(const json::value& item, lease::Kind kind) {
  lease::Answer out{.subject = SubjectId::trusted(text_of(item, lease::id_field(kind)))};
  auto outcome = named<lease::Outcome>(text_of(item, "result"));
  if (!outcome || out.subject.empty()) return bad_answer();
  out.outcome = *outcome;
  out.version = {number_of(item, "version")};
  out.grant = {number_of(item, "grant_version")};
  out.ttl = std::chrono::milliseconds(number_of(item, "ttl_ms"));
  out.why = named<lease::Refusal>(text_of(item, "reason")).value_or(lease::Refusal::none);
  out.yours = flag_of(item, "yours");
  if (const json::value* previous = field(item, "previous"))
    out.previous = read_tenure(*previous);
  return out;
}

// Whether a refusal says something about the matter, so that this address is the right one.
bool answers(const net::ClientResponse& refusal, const Error& said, PlaneTalk::Refusals unknown) {
  using Refusals = PlaneTalk::Refusals;
  if (unknown == Refusals::none || unknown == Refusals::all) return unknown == Refusals::none;
  bool missing = said.code == Errc::not_found && said.reason.ends_with("_not_found");
  return !net::says_nothing(refusal) || (missing && unknown == Refusals::some_but_missing);
}

}  // namespace

Result<std::unique_ptr<PlaneTalk>> PlaneTalk::create(asio::io_context& io, Clock& clock, Config config) {
  TRY(client, net::HttpClient::create(io, config.url, {.ca_file = config.ca_file}));
  return std::unique_ptr<PlaneTalk>(new PlaneTalk(clock, std::move(config), std::move(client)));
}

Status PlaneTalk::use(const std::string& url, Secret api_key) {
  TRY(known, client_.use(url));
  if (!(api_key == config_.api_key)) own_ = {};
  config_.api_key = std::move(api_key);
  return ok();
}

// ---- asking ----

asio::awaitable<Status> PlaneTalk::send(net::ClientRequest request, Read read, Refusals unknown) {
  Status heard = ok();
  request.usable = [&](const net::ClientResponse& answer) {
    if (answer.status >= 300) {
      Error said = net::response_error(answer);
      bool is_answer = answers(answer, said, unknown);
      heard = std::move(said);
      return is_answer;
    }
    auto parsed = json::parse_text(answer.body);
    heard = parsed && parsed->is_object() ? read(*parsed) : Status(bad_answer());
    return bool(heard);
  };
  CO_TRY(answered, co_await client_.send(std::move(request)));
  co_return heard;
}

asio::awaitable<Status> PlaneTalk::ask(net::Method method, std::string target, std::string body, Duration patience,
                                       Read read, bool replayable, Refusals unknown) {
  CO_TRY(token, co_await runner_token());
  net::ClientRequest request{.method = method, .target = std::move(target), .body = std::move(body), .bearer = token,
                             .timeout = patience, .replayable = replayable};
  Status heard = co_await send(std::move(request), std::move(read), unknown);
  if (!heard && heard.error().code == Errc::unauthorized) refused(token);
  co_return heard;
}

// ---- tokens ----

asio::awaitable<Result<PlaneTalk::Bought>> PlaneTalk::buy(Secret with, json::object body) {
  net::ClientRequest request{.method = net::Method::post, .target = "/v1/auth/token", .body = json::to_text(body),
                             .bearer = std::move(with), .timeout = own_is_alive() ? config_.attempt : config_.patience,
                             .replayable = true};
  Bought out;
  Read read = [&](json::value& answer) -> Status {
    out.token = Secret(text_of(answer, "token"));
    auto life = std::chrono::seconds(number_of(answer, "expires_in"));
    out.expires = clock_.wall() + life;
    out.renew_at = clock_.wall() + life / 2;
    return out.token.empty() || life <= 0s ? Status(bad_answer()) : ok();
  };
  CO_TRY(heard, co_await send(std::move(request), std::move(read)));
  co_return out;
}

// A refused token is not forgotten: the next address may accept it.
void PlaneTalk::refused(const Secret& token) {
  if (own_.token == token) own_.renew_at = {};
}

bool PlaneTalk::read_token_file() {
  std::string word;
  std::ifstream(config_.token_file) >> word;
  if (!word.empty()) config_.token = Secret(word);
  return !word.empty();
}

void PlaneTalk::explain_refusal(bool file_read, const Error& why) {
  log::warn("runner.token_refused",
            fmt::format("the control plane refuses this runner's token: {}; {} {}. Until it has another it gets no "
                        "leases. Where the control plane's secret is, run: weir token --role runner --sub {} > {} (no "
                        "restart is needed)",
                        why.message, config_.token_file, file_read ? "holds no better one" : "cannot be read",
                        config_.runner.str(), config_.token_file))
      .with("error_code", why.reason);
}

asio::awaitable<Result<PlaneTalk::Bought>> PlaneTalk::buy_own() {
  json::object body;
  if (!config_.api_key.empty()) co_return co_await buy(config_.api_key, std::move(body));
  body["role"] = "runner";
  if (own_is_alive()) {
    auto bought = co_await buy(own_.token, body);
    if (bought || bought.error().code != Errc::unauthorized) co_return bought;
  }
  bool file_read = read_token_file();
  auto bought = co_await buy(config_.token, body);
  bool refusal = !bought && bought.error().code == Errc::unauthorized;
  // In the second round: one of several addresses may be the only one that refuses.
  if (refusal && ++rounds_refused_ == 2 && !config_.token_file.empty()) explain_refusal(file_read, bought.error());
  co_return bought;
}

asio::awaitable<Result<Secret>> PlaneTalk::runner_token() {
  if (!own_.token.empty() && clock_.wall() < own_.renew_at) co_return own_.token;
  if (config_.key) {
    WallTime now = clock_.wall();
    net::Claims claims{.sub = config_.runner.str(), .role = net::Role::runner, .expires = now + kTokenLife};
    own_ = {config_.key->sign(claims), now + kTokenLife / 3, now + kTokenLife};
    co_return own_.token;
  }
  auto bought = co_await buy_own();
  if (bought) {
    own_ = *std::move(bought);
    rounds_refused_ = 0;
    co_return own_.token;
  }
  if (own_is_alive()) {
    // The next one is bought in good time: a renewal must not wait for it again and again.
    if (bought.error().code != Errc::unauthorized) own_.renew_at = clock_.wall() + kBuyAgain;
    co_return own_.token;
  }
  if (config_.api_key.empty() && !config_.token.empty()) co_return config_.token;
  co_return std::move(bought).error();
}

asio::awaitable<Result<LentToken>> PlaneTalk::worker_token(BootId boot) {
  if (config_.key) {
    net::Claims claims{.sub = config_.runner.str(), .role = net::Role::worker, .boot = boot,
                       .expires = clock_.wall() + kTokenLife};
    co_return LentToken{config_.key->sign(claims), kTokenLife};
  }
  // A token that is bought with a token of a key ends no later than that one; a token that is bought with the key
  // itself has its full time.
  Secret with = config_.api_key;
  if (with.empty()) {
    CO_TRY(token, co_await runner_token());
    with = token;
  }
  json::object body{{"role", "worker"}, {"boot_id", boot.str()}};
  auto bought = co_await buy(with, std::move(body));
  if (bought) co_return LentToken{bought->token, bought->expires - clock_.wall()};
  if (bought.error().code == Errc::unauthorized) refused(with);
  co_return std::move(bought).error();
}

// ---- questions ----

asio::awaitable<Result<json::array>> PlaneTalk::list(std::string first) {
  json::array out;
  for (std::string cursor;;) {
    std::string target = cursor.empty() ? first : first + "&cursor=" + percent_encode(cursor);
    Read read = [&](json::value& page) -> Status {
      json::value* found = page.get_object().if_contains("items");
      if (found == nullptr || !found->is_array()) return bad_answer();
      for (json::value& item : found->get_array()) out.push_back(std::move(item));
      cursor = text_of(page, "next_cursor");
      return ok();
    };
    CO_TRY(heard, co_await ask(net::Method::get, std::move(target), {}, config_.patience, std::move(read)));
    if (cursor.empty()) co_return std::move(out);
  }
}

asio::awaitable<Result<std::vector<lease::Answer>>> PlaneTalk::apply(lease::Batch batch) {
  json::array asks;
  for (const lease::Ask& each : batch.asks) asks.push_back(write_ask(each, batch.kind));
  json::object body{{"runner_id", batch.owner.runner.str()},
                    {"boot_id", batch.owner.boot.str()},
                    {"items", std::move(asks)}};
  if (batch.operation != lease::Operation::release) body["ttl_seconds"] = seconds(batch.ttl);
  if (lease::makes_rows(batch)) {
    if (!batch.home.tenant.empty()) body["tenant_id"] = batch.home.tenant.str();
    if (!batch.home.site.empty()) body["site_id"] = batch.home.site.str();
  }
  constexpr std::string_view routes[] = {"acquire", "renew", "release"};
  std::string target = fmt::format("/v1/leases/{}/{}-batch", lease::to_string(batch.kind),
                                   routes[static_cast<size_t>(batch.operation)]);
  std::vector<lease::Answer> out;
  Read read = [&](json::value& answer) -> Status {
    const json::value* items = field(answer, "items");
    if (items == nullptr || !items->is_array() || items->get_array().size() != batch.asks.size()) return bad_answer();
    for (size_t i = 0; i < batch.asks.size(); ++i) {
      TRY(each, read_answer(items->get_array()[i], batch.kind));
      if (each.subject != batch.asks[i].subject) return bad_answer();
      out.push_back(std::move(each));
    }
    return ok();
  };
  CO_TRY(heard, co_await ask(net::Method::post, std::move(target), json::to_text(body), config_.attempt,
                             std::move(read), true, Refusals::all));
  co_return std::move(out);
}

}  // namespace weir::http_plane
