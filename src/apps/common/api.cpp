#include "api.hpp"

#include "files.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/spawn.hpp"
#include "weir/net/token.hpp"

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace weir::apps {

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// Given by the user rather than assumed.
bool chosen(const Settings& settings, std::string_view name) { return settings.origin(name) != "default"; }

Result<Secret> admin_token(const Settings& settings) {
  std::string path = secret_file(settings);
  if (!std::filesystem::exists(path))
    return Error{Errc::unauthorized, "no_token",
                 fmt::format("no token: give --token-file or WEIR_TOKEN, or the --state-dir of a `weir up` ({} does "
                             "not exist)",
                             path)};
  TRY(key, net::TokenKey::load_or_create(path));
  return key.sign({.sub = "weir-cli", .role = net::Role::admin, .expires = wall_now() + 15min});
}

bool by_flag(const Settings& settings, std::string_view name) { return settings.origin(name).starts_with("flag"); }

// A --state-dir on the command line means the control plane in that folder, whatever the environment says.
bool means_folder(const Settings& settings) {
  return by_flag(settings, "state_dir") && !by_flag(settings, "control_plane_url");
}

// The key that is to be shown at an address which comes from a folder, or does not.
Secret key_for(const Settings& settings, bool of_folder) {
  bool from_environment = settings.origin("api_key").starts_with("environment");
  bool secret_named = by_flag(settings, "state_dir") || chosen(settings, "auth_secret_file");
  return from_environment && (of_folder || secret_named) ? Secret() : settings.secret("api_key");
}

struct Address {
  std::string url;
  bool of_folder = false;  // as a `weir up` wrote it down
};

Result<Address> find_address(const Settings& settings) {
  std::string url;
  if (!means_folder(settings)) {
    if (!by_flag(settings, "control_plane_url")) url = environment("WEIR_URL");
    if (url.empty()) url = settings.text("control_plane_url");
  }
  if (!url.empty()) return Address{url};
  std::string path = endpoint_file(settings.text("state_dir"));
  auto text = read_file(path, 4096);
  if (!text)
    return Error{Errc::unavailable, "no_endpoint",
                 fmt::format("no control plane is running in {}: start it with `weir up`, or give --url and "
                             "--token-file",
                             settings.text("state_dir"))};
  return Address{trimmed(*text), true};
}

}  // namespace

Error unanswered(const Error& why, const net::ClientRequest& request, const std::string& url, bool of_folder) {
  if (why.reason.starts_with("tls_")) return why;  // it runs, and says itself what to change
  if (why.reason == kFileFailed) return why;       // what a body comes from or goes to
  bool looks = request.method == net::Method::get || request.method == net::Method::head;
  if (why.reason == "timeout")
    return Error{Errc::unavailable, "timeout",
                 fmt::format("the control plane at {} did not answer within {:.0f} s{}", redact_url(url),
                             seconds(request.timeout), looks ? "" : "; whether it was done is not known")};
  return Error{Errc::unavailable, "unreachable",
               fmt::format("cannot reach the control plane at {}: is it running?{} ({})", redact_url(url),
                           of_folder ? " start it with `weir up`" : "", why.message)};
}

std::vector<Option> with_api_options(std::vector<Option> own) {
  own.push_back({"token-file", "FILE",
                 "A file that holds the token; otherwise WEIR_TOKEN, API_KEY or the state folder's secret"});
  own.push_back({"json", "", "Print JSON"});
  return own;
}

Result<Api> Api::connect(const Arguments& arguments) {
  TRY(settings, arguments.settings());
  TRY(address, find_address(settings));
  Secret token(means_folder(settings) ? std::string() : environment("WEIR_TOKEN"));
  Secret key = key_for(settings, address.of_folder);
  if (by_flag(settings, "api_key")) token = Secret();
  if (arguments.has("token-file")) {
    TRY(text, read_file(arguments.text("token-file"), 64 << 10));
    token = Secret(trimmed(text));
  } else if (token.empty() && key.empty()) {
    if (!address.of_folder && !chosen(settings, "state_dir") && !chosen(settings, "auth_secret_file"))
      return Error{Errc::unauthorized, "no_token",
                   fmt::format("no token for {}: give --token-file, WEIR_TOKEN or API_KEY, or name its secret with "
                               "--auth-secret-file or --state-dir",
                               redact_url(address.url))};
    TRY(minted, admin_token(settings));
    token = std::move(minted);
  }
  bool buys = token.empty();
  TRY(api, connect(std::move(address.url), std::move(token), settings.text("control_plane_ca_file")));
  api.of_folder_ = address.of_folder;
  if (buys) {
    TRY(bought, api.buy_token(key));
  }
  return api;
}

Status Api::buy_token(const Secret& api_key) {
  token_ = api_key;
  // A request that is repeated for nothing buys one token more, which nobody holds: that does no harm.
  TRY(response, ask_each({.method = net::Method::post, .target = "/v1/auth/token", .body = "{}", .bearer = api_key}));
  if (response.status >= 400) {
    Error why = net::response_error(response);
    if (why.code == Errc::unauthorized) why.message = fmt::format("API_KEY: {} at {}", why.message, redact_url(url_));
    return why;
  }
  TRY(answer, json::parse_text(response.body));
  const json::value* bought = answer.is_object() ? answer.get_object().if_contains("token") : nullptr;
  if (bought == nullptr || !bought->is_string())
    return Error{Errc::internal, "bad_answer", fmt::format("{} did not answer with a token", redact_url(url_))};
  token_ = Secret(std::string(bought->get_string()));
  if (const json::value* role = answer.get_object().if_contains("role"); role != nullptr && role->is_string())
    bought_role_ = std::string(role->get_string());
  return ok();
}

std::string usual_url(const Settings& settings) {
  auto left = by_flag(settings, "state_dir") ? read_file(endpoint_file(settings.text("state_dir")), 4096)
                                             : Result<std::string>(Error{});
  return left ? trimmed(*left) : environment("WEIR_URL");
}

Result<Api> Api::connect(std::string url, Secret token, const std::string& ca_file) {
  Api api(std::move(url), std::move(token));
  api.io_ = std::make_unique<boost::asio::io_context>(1);
  TRY(client, net::HttpClient::create(*api.io_, api.url_, {.ca_file = ca_file}));
  api.client_ = std::make_unique<net::HttpClient>(std::move(client));
  return api;
}

Result<net::ClientResponse> Api::raw(net::Method method, std::string target, std::string body) {
  bool several = url_.find(',') != std::string::npos;
  // A request that must not be carried out twice is sent once, to an address that has just answered another one.
  if (several && (method == net::Method::post || method == net::Method::patch)) {
    TRY(alive, ask_each({.method = net::Method::get, .target = "/healthz"}));
  }
  net::ClientRequest request{.method = method, .target = std::move(target), .body = std::move(body), .bearer = token_};
  return method == net::Method::post || method == net::Method::patch ? ask_once(request) : ask_each(request);
}

// The client goes on to the next address by itself when one fails.
Result<net::ClientResponse> Api::ask_each(const net::ClientRequest& request) {
  auto answer = ask_once(request);
  for (auto left = std::ranges::count(url_, ','); left > 0 && (!answer || answer->status >= 500); --left)
    answer = ask_once(request);
  return answer;
}

// The lookup of a name cannot be cancelled, and destroying the loop would wait for it: so the loop is left to end
// with the process.
Api::~Api() {
  client_.reset();
  if (!io_) return;
  io_->restart();
  if (!abandoned_) io_->poll();
  if (!io_->stopped()) (void)io_.release();
}

Result<net::ClientResponse> Api::ask_once(const net::ClientRequest& request) {
  std::optional<Result<net::ClientResponse>> answer;
  io_->restart();
  auto ask = [&]() -> boost::asio::awaitable<void> { answer.emplace(co_await client_->send(request)); };
  spawn(io_->get_executor(), ask(), "a question to the control plane");
  // An idle connection that is kept for the next call must not keep this one.
  while (!answer && !io_->stopped() && !over()) io_->run_one_for(100ms);
  abandoned_ |= !answer && over();
  if (abandoned_) return Error{Errc::unavailable, "over", "the answer was not waited for"};
  if (!answer) answer.emplace(Error{Errc::internal, "internal", "the request ended without an answer"});
  if (!*answer) return unanswered(answer->error(), request, url_, of_folder_);
  return std::move(**answer);
}

Status Api::follow(std::string target, const std::function<bool(const net::StreamedEvent&)>& each) {
  constexpr Duration kSilence = 45s;  // a stream without events is kept alive every 15 s
  net::ClientRequest request{.method = net::Method::get, .target = std::move(target), .bearer = token_};
  std::optional<Status> ended;
  io_->restart();
  auto listen = [&]() -> boost::asio::awaitable<void> {
    ended.emplace(co_await client_->follow(std::move(request), kSilence, each));
  };
  spawn(io_->get_executor(), listen(), "a stream of events");
  while (!ended && !over()) io_->run_one_for(100ms);
  abandoned_ |= !ended;
  if (!ended) return ok();
  if (!*ended && ended->error().reason == "unreachable") return unanswered(ended->error(), {}, url_, of_folder_);
  return *std::move(ended);
}

Result<json::value> Api::send(net::Method method, std::string target, const json::object& body) {
  TRY(response, raw(method, std::move(target), body.empty() ? std::string() : json::to_text(body)));
  return read_answer(response);
}

Result<json::value> Api::read_answer(const net::ClientResponse& response) const {
  if (response.status >= 400) {
    Error why = net::response_error(response);
    if (why.reason == "role_forbidden" && !bought_role_.empty())
      why.message += fmt::format(": the API key that was shown buys tokens of the role {}", bought_role_);
    return why;
  }
  if (response.body.empty()) return json::value(json::object());
  return json::parse_text(response.body);
}

namespace {
// For one step of a body's way: a control plane brings the end of a large file to its disk before it answers.
constexpr Duration kBodyStep = 300s;
}  // namespace

// It is sent once, to an address that has just answered another request.
Result<json::value> Api::upload(std::string target, net::BodySource body, std::pair<std::string, std::string> header) {
  TRY(alive, ask_each({.method = net::Method::get, .target = "/healthz"}));
  TRY(response, ask_once({.method = net::Method::put,
                          .target = std::move(target),
                          .bearer = token_,
                          .timeout = kBodyStep,
                          .headers = {std::move(header)},
                          .content_type = "application/octet-stream",
                          .upload = std::move(body)}));
  return read_answer(response);
}

Status Api::download(std::string target, std::function<Status(std::string_view)> sink) {
  TRY(alive, ask_each({.method = net::Method::get, .target = "/healthz"}));
  net::ClientRequest request{.target = std::move(target), .bearer = token_, .timeout = kBodyStep};
  request.sink = [sink = std::move(sink)](std::string piece) -> boost::asio::awaitable<Status> {
    co_return sink(piece);
  };
  TRY(response, ask_once(request));
  TRY(answer, read_answer(response));
  return ok();
}

Result<json::value> Api::get(std::string target) { return send(net::Method::get, std::move(target)); }

Result<json::array> Api::list(const std::string& target) {
  json::array all;
  std::string cursor;
  for (;;) {
    std::string page = target;
    add_query(page, "limit", "1000");
    add_query(page, "cursor", cursor);
    TRY(answer, get(page));
    const json::value* items = answer.is_object() ? answer.get_object().if_contains("items") : nullptr;
    if (items == nullptr || !items->is_array())
      return Error{Errc::internal, "bad_answer", fmt::format("{} did not answer with a list", redact_url(url_))};
    all.insert(all.end(), items->get_array().begin(), items->get_array().end());
    const json::value* next = answer.get_object().if_contains("next_cursor");
    if (next == nullptr || !next->is_string() || std::string_view(next->get_string()) == cursor) return all;
    cursor = std::string(next->get_string());
  }
}

std::string route(std::string_view base, std::string_view id, std::string_view rest) {
  return fmt::format("{}/{}{}", base, percent_encode(id), rest);
}

void add_query(std::string& target, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  target += fmt::format("{}{}={}", target.find('?') == std::string::npos ? '?' : '&', name, percent_encode(value));
}

std::string endpoint_file(const std::string& state_dir) { return state_dir + "/endpoint"; }

std::string secret_file(const Settings& settings) {
  std::string given = settings.text("auth_secret_file");
  return given.empty() ? settings.text("state_dir") + "/auth.secret" : given;
}

std::string url_of(const std::string& address, std::string_view scheme) {
  std::string_view place = address;
  if (place.starts_with("0.0.0.0:")) return fmt::format("{}://127.0.0.1{}", scheme, place.substr(7));
  if (place.starts_with("[::]:")) return fmt::format("{}://[::1]{}", scheme, place.substr(4));
  return fmt::format("{}://{}", scheme, place);
}

bool listens_on_loopback(std::string_view listen) {
  std::string host(listen.substr(0, listen.rfind(':')));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  boost::system::error_code bad;
  auto address = boost::asio::ip::make_address(host, bad);
  return bad ? host == "localhost" : address.is_loopback();
}

}  // namespace weir::apps
