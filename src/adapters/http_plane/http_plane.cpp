#include "weir/http_plane/http_plane.hpp"

#include "weir/base/json.hpp"
#include "weir/base/log.hpp"

#include <fstream>

namespace weir::http_plane {

namespace asio = boost::asio;

namespace {

constexpr Duration kTokenLife = 15min;
constexpr Duration kBuyAgain = 5s;
constexpr Duration kPictureTime = 4s;  // whoever waits for it has left by then

Error bad_answer() {
  return {Errc::unavailable, "bad_answer", "the control plane's answer cannot be read; nothing is known"};
}

const json::value* field(const json::value& v, std::string_view name) {
  return v.is_object() ? v.get_object().if_contains(name) : nullptr;
}
std::string text_of(const json::value& v, std::string_view name) {
  const json::value* found = field(v, name);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}
std::int64_t number_of(const json::value& v, std::string_view name) {
  const json::value* found = field(v, name);
  if (found == nullptr) return 0;
  if (found->is_int64()) return found->get_int64();
  if (found->is_uint64()) return static_cast<std::int64_t>(found->get_uint64());
  return found->is_double() ? static_cast<std::int64_t>(found->get_double()) : 0;
}
bool flag_of(const json::value& v, std::string_view name) {
  const json::value* found = field(v, name);
  return found != nullptr && found->is_bool() && found->get_bool();
}

template <class E>
std::optional<E> named(std::string_view text) {
  for (const auto& [value, name] : enum_names(E{}))
    if (name == text) return value;
  return std::nullopt;
}

RunnerFlags read_flags(const json::value& v) {
  RunnerFlags out{.cordoned = flag_of(v, "cordoned"),
                  .drain = named<DrainMode>(text_of(v, "drain_mode")).value_or(DrainMode::none),
                  .capacity = static_cast<int>(number_of(v, "capacity_streams"))};
  if (field(v, "spare_streams") != nullptr) out.spare = static_cast<int>(number_of(v, "spare_streams"));
  return out;
}

Result<DesiredCamera> read_camera(json::value item) {
  if (!item.is_object()) return bad_answer();
  DesiredCamera out{.version = text_of(item, "config_version"), .crashes = static_cast<int>(number_of(item, "crashes"))};
  json::object& config = item.get_object();
  for (const char* name : {"config_version", "zone_version", "crashes", "created_at", "updated_at"}) config.erase(name);
  if (out.version.empty()) out.version = net::sha256_hex(json::to_text(config));
  TRY(read, camera::read_config(item, json::Unknown::ignore));  // of a newer control plane
  out.config = std::move(read);
  return out;
}

json::object write_ask(const lease::Ask& ask) {
  json::object out{{"camera_uuid", ask.camera.str()}};
  if (ask.version) out["version"] = ask.version->n;
  if (ask.rotate) out["rotate"] = true;
  if (!ask.key.empty()) out["key"] = ask.key;
  if (ask.avoid) out["avoid"] = true;
  return out;
}

Status anything(const json::value&) { return ok(); }

lease::Tenure read_tenure(const json::value& v) {
  return {BootId::trusted(text_of(v, "boot_id")), {number_of(v, "grant_version")}};
}

Result<lease::Answer> read_answer(const json::value& item) {
  lease::Answer out{.camera = CameraId::trusted(text_of(item, "camera_uuid"))};
  auto outcome = named<lease::Outcome>(text_of(item, "result"));
  if (!outcome || out.camera.empty()) return bad_answer();
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

// None where something is missing: nothing is known of it then.
std::optional<lease::LeaseRow> read_lease(const json::value& item) {
  const json::value *boot = field(item, "boot_id"), *assignable = field(item, "assignable");
  lease::LeaseRow row{.camera = CameraId::trusted(text_of(item, "camera_uuid"))};
  row.grant = read_tenure(item).grant;
  if (row.camera.empty() || row.grant.n <= 0 || boot == nullptr || !boot->is_string()) return {};
  if (assignable != nullptr && !assignable->is_bool()) return {};
  row.owner = {RunnerId::trusted(text_of(item, "runner_id")), read_tenure(item).boot};
  row.version = {number_of(item, "version")};
  row.assignable = assignable == nullptr || assignable->get_bool();  // an older control plane does not say
  std::string status = text_of(item, "status");
  row.released = status == "released" || status == "revoked";
  if (const json::value* previous = field(item, "previous")) row.previous = read_tenure(*previous);
  return row;
}

}  // namespace

HttpPlane::HttpPlane(Clock& clock, Config config, net::HttpClient client, net::HttpClient picture_client)
    : clock_(clock), config_(std::move(config)), client_(std::move(client)), picture_client_(std::move(picture_client)) {}

Result<std::unique_ptr<HttpPlane>> HttpPlane::create(asio::io_context& io, Clock& clock, Config config) {
  TRY(client, net::HttpClient::create(io, config.url, {.ca_file = config.ca_file}));
  TRY(picture_client, net::HttpClient::create(io, config.url, {.ca_file = config.ca_file}));
  return std::unique_ptr<HttpPlane>(
      new HttpPlane(clock, std::move(config), std::move(client), std::move(picture_client)));
}

Status HttpPlane::use(const std::string& url, Secret api_key) {
  TRY(known, client_.use(url));
  TRY(known_too, picture_client_.use(url));
  if (!(api_key == config_.api_key)) own_ = {};
  config_.api_key = std::move(api_key);
  return ok();
}

// ---- asking ----

asio::awaitable<Status> HttpPlane::send(net::ClientRequest request, Read read, Refusals unknown) {
  Status heard = ok();
  request.usable = [&](const net::ClientResponse& answer) {
    if (answer.status >= 300) {
      heard = net::response_error(answer);
      return unknown == Refusals::none || (unknown == Refusals::some && !net::says_nothing(answer));
    }
    auto parsed = json::parse_text(answer.body);
    heard = parsed && parsed->is_object() ? read(*parsed) : Status(bad_answer());
    return bool(heard);
  };
  CO_TRY(answered, co_await client_.send(std::move(request)));
  co_return heard;
}

asio::awaitable<Status> HttpPlane::ask(net::Method method, std::string target, std::string body, Duration patience,
                                       Read read, bool replayable, Refusals unknown) {
  CO_TRY(token, co_await runner_token());
  net::ClientRequest request{.method = method, .target = std::move(target), .body = std::move(body), .bearer = token,
                             .timeout = patience, .replayable = replayable};
  Status heard = co_await send(std::move(request), std::move(read), unknown);
  if (!heard && heard.error().code == Errc::unauthorized) refused(token);
  co_return heard;
}

// ---- tokens ----

asio::awaitable<Result<HttpPlane::Bought>> HttpPlane::buy(Secret with, json::object body) {
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

// Not forgotten: at the next address it may be good.
void HttpPlane::refused(const Secret& token) {
  if (own_.token == token) own_.renew_at = {};
}

bool HttpPlane::read_token_file() {
  std::string word;
  std::ifstream(config_.token_file) >> word;
  if (!word.empty()) config_.token = Secret(word);
  return !word.empty();
}

void HttpPlane::explain_refusal(bool file_read, const Error& why) {
  log::warn("runner.token_refused",
            fmt::format("the control plane refuses this runner's token: {}; {} {}. Until it has another it gets no "
                        "cameras. Where the control plane's secret is, run: weir token --role runner --sub {} > {} (no "
                        "restart is needed)",
                        why.message, config_.token_file, file_read ? "holds no better one" : "cannot be read",
                        config_.runner.str(), config_.token_file))
      .with("error_code", why.reason);
}

asio::awaitable<Result<HttpPlane::Bought>> HttpPlane::buy_own() {
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

asio::awaitable<Result<Secret>> HttpPlane::runner_token() {
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

asio::awaitable<Result<LentToken>> HttpPlane::worker_token(BootId boot) {
  if (config_.key) {
    net::Claims claims{.sub = config_.runner.str(), .role = net::Role::worker, .boot = boot,
                       .expires = clock_.wall() + kTokenLife};
    co_return LentToken{config_.key->sign(claims), kTokenLife};
  }
  // A token that was bought with a key lends its own end to what it buys; the key itself does not.
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

// ---- the runner's questions ----

asio::awaitable<Result<Registration>> HttpPlane::register_runner(Runner runner) {
  json::object body = write_about(runner);
  body["runner_id"] = runner.id.str();
  body["boot_id"] = runner.boot.str();
  body["capacity_streams"] = runner.capacity;
  if (!runner.tenant.empty()) body["tenant_id"] = runner.tenant.str();
  if (!runner.site.empty()) body["site_id"] = runner.site.str();
  Registration out;
  Read read = [&](json::value& answer) -> Status {
    out.flags = read_flags(answer);
    out.will = Secret(text_of(answer, "will"));
    return out.will.empty() ? Status(bad_answer()) : ok();
  };
  CO_TRY(heard, co_await ask(net::Method::post, "/v1/runners/register", json::to_text(body), config_.patience,
                             std::move(read)));
  co_return out;
}

asio::awaitable<Result<RunnerFlags>> HttpPlane::heartbeat(RunnerId runner, json::object body) {
  body["runner_id"] = runner.str();
  RunnerFlags out;
  Read read = [&](json::value& answer) -> Status {
    out = read_flags(answer);
    return ok();
  };
  CO_TRY(heard, co_await ask(net::Method::post, "/v1/runners/heartbeat", json::to_text(body), config_.attempt,
                             std::move(read)));
  co_return out;
}

// All pages of a list.
asio::awaitable<Result<json::array>> HttpPlane::list(std::string first) {
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

asio::awaitable<Result<DesiredCameras>> HttpPlane::desired(DesiredFilter filter) {
  std::string target = "/v1/cameras?enabled=true&limit=1000";
  if (!filter.tenant.empty()) target += "&tenant_id=" + percent_encode(filter.tenant.str());
  if (!filter.site.empty()) target += "&site_id=" + percent_encode(filter.site.str());
  CO_TRY(items, co_await list(std::move(target)));
  DesiredCameras out;
  for (json::value& item : items) {
    std::string id = text_of(item, "camera_uuid");
    auto camera = read_camera(std::move(item));
    if (!camera && id.empty()) co_return std::move(camera).error();
    if (!camera) {
      explain_unreadable(id, camera.error());
      out.unreadable.insert(CameraId::trusted(id));
    } else if (camera->config.assignable()) {
      out.readable.push_back(*std::move(camera));
    }
  }
  std::erase_if(unreadable_, [&](const auto& said) { return !out.unreadable.contains(CameraId::trusted(said.first)); });
  co_return std::move(out);
}

asio::awaitable<Result<std::vector<Holding>>> HttpPlane::held() {
  CO_TRY(items, co_await list("/v1/leases?everybody=true&limit=1000"));
  std::vector<Holding> out;
  for (const json::value& item : items)
    if (text_of(item, "status") == "active")
      out.push_back({CameraId::trusted(text_of(item, "camera_uuid")), RunnerId::trusted(text_of(item, "runner_id")),
                     {number_of(item, "version")}});
  co_return std::move(out);
}

asio::awaitable<Result<std::vector<lease::LeaseRow>>> HttpPlane::leases() {
  CO_TRY(items, co_await list("/v1/leases?everybody=true&held=false&limit=1000"));
  std::vector<lease::LeaseRow> out;
  for (const json::value& item : items)
    if (auto row = read_lease(item)) out.push_back(*std::move(row));
  co_return std::move(out);
}

void HttpPlane::explain_unreadable(const std::string& camera, const Error& why) {
  if (std::exchange(unreadable_[camera], why.message) == why.message) return;
  log::warn("cameras.unreadable",
            fmt::format("camera {} of the control plane's list cannot be read: {}; where this runner has it, it goes on "
                        "as it was; else it is left to others. Change that field of the camera, or upgrade this runner",
                        camera, why.message))
      .with("camera_uuid", camera);
}

asio::awaitable<Result<std::vector<lease::Answer>>> HttpPlane::apply(lease::Batch batch) {
  json::array asks;
  for (const lease::Ask& each : batch.asks) asks.push_back(write_ask(each));
  json::object body{{"runner_id", batch.owner.runner.str()},
                    {"boot_id", batch.owner.boot.str()},
                    {"items", std::move(asks)}};
  if (batch.operation != lease::Operation::release) body["ttl_seconds"] = seconds(batch.ttl);
  constexpr std::string_view routes[] = {"acquire", "renew", "release"};
  std::string target = fmt::format("/v1/leases/camera/{}-batch", routes[static_cast<size_t>(batch.operation)]);
  std::vector<lease::Answer> out;
  Read read = [&](json::value& answer) -> Status {
    const json::value* items = field(answer, "items");
    if (items == nullptr || !items->is_array() || items->get_array().size() != batch.asks.size()) return bad_answer();
    for (size_t i = 0; i < batch.asks.size(); ++i) {
      TRY(each, read_answer(items->get_array()[i]));
      if (each.camera != batch.asks[i].camera) return bad_answer();
      out.push_back(std::move(each));
    }
    return ok();
  };
  CO_TRY(heard, co_await ask(net::Method::post, std::move(target), json::to_text(body), config_.attempt,
                             std::move(read), true, Refusals::all));
  co_return std::move(out);
}

asio::awaitable<Result<BudgetAnswer>> HttpPlane::consume(SiteId site, BudgetUse use) {
  json::object body{{"camera_uuid", use.camera.str()}, {"grant_version", use.grant.n}};
  std::string target = fmt::format("/v1/sites/{}/budget/consume", percent_encode(site.str()));
  auto answer = co_await ask(net::Method::post, std::move(target), json::to_text(body), config_.attempt, anything);
  if (answer) co_return BudgetAnswer{.granted = true};
  if (answer.error().reason != "budget_empty") co_return std::move(answer).error();
  auto wait = std::chrono::milliseconds(number_of(json::value(answer.error().details), "retry_after_ms"));
  co_return BudgetAnswer{.granted = false, .retry_after = wait};
}

asio::awaitable<Result<double>> HttpPlane::budget(SiteId site) {
  double tokens = 0;
  Read read = [&](json::value& answer) -> Status {
    const json::value* there = field(answer, "tokens");
    if (there == nullptr || !there->is_number()) return bad_answer();
    tokens = there->to_number<double>();
    return ok();
  };
  std::string target = fmt::format("/v1/sites/{}/budget", percent_encode(site.str()));
  // An older control plane does not tell runners; that is no reason to ask about leases elsewhere.
  CO_TRY(heard, co_await ask(net::Method::get, std::move(target), {}, config_.attempt, std::move(read), true,
                             Refusals::none));
  co_return tokens;
}

asio::awaitable<Result<Nothing>> HttpPlane::report_crash(CameraId camera, lease::Owner by) {
  json::object body{{"runner_id", by.runner.str()}, {"boot_id", by.boot.str()}};
  std::string target = fmt::format("/v1/cameras/{}/crashes", percent_encode(camera.str()));
  CO_TRY(heard, co_await ask(net::Method::post, std::move(target), json::to_text(body), config_.patience, anything,
                             false));
  co_return ok();
}

asio::awaitable<Result<Nothing>> HttpPlane::send_picture(CameraId camera, RunnerId by, SnapshotPicture picture) {
  json::object body{{"runner_id", by.str()}, {"request_id", picture.request}, {"jpeg", picture.jpeg}};
  if (!picture.captured_at.empty()) body["captured_at"] = picture.captured_at;
  std::string target = fmt::format("/v1/cameras/{}/snapshot", percent_encode(camera.str()));
  CO_TRY(token, co_await runner_token());
  net::ClientRequest request{.method = net::Method::put, .target = std::move(target), .body = json::to_text(body),
                             .bearer = token, .timeout = kPictureTime};
  CO_TRY(answer, co_await picture_client_.send(std::move(request)));
  if (answer.status >= 300) co_return net::response_error(answer);
  co_return ok();
}

}  // namespace weir::http_plane
