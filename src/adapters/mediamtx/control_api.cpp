#include "weir/mediamtx/control_api.hpp"

#include "path_answer.hpp"

#include "weir/base/json.hpp"
#include "weir/net/token.hpp"

#include <algorithm>

namespace weir::mediamtx {

namespace asio = boost::asio;

namespace {

constexpr std::int64_t kPagesMax = 1000;  // of 100 paths

// The type of a connection → the route that can end it.
constexpr std::pair<std::string_view, std::string_view> kKickRoutes[] = {
    {"rtspSession", "rtspsessions"}, {"rtspsSession", "rtspssessions"},   {"rtmpConn", "rtmpconns"},
    {"rtmpsConn", "rtmpsconns"},     {"webRTCSession", "webrtcsessions"}, {"srtConn", "srtconns"}};

std::string basic(std::string_view user_and_password) {
  std::string text = net::base64url(percent_decode(user_and_password));
  std::ranges::replace(text, '-', '+');
  std::ranges::replace(text, '_', '/');
  text.resize((text.size() + 3) / 4 * 4, '=');
  return "Basic " + text;
}

// Takes "user:password@" out of a URL: the HTTP client wants none there, and shows its URL in errors.
Secret take_user(std::string& url) {
  size_t begin = url.find("://");
  if (begin == std::string::npos) return {};
  begin += 3;
  size_t end = url.substr(0, url.find('/', begin)).rfind('@');
  if (end == std::string::npos || end < begin) return {};
  Secret out(basic(std::string_view(url).substr(begin, end - begin)));
  url.erase(begin, end + 1 - begin);
  return out;
}

// Another server, or one without that route, says 404 as well, in other words.
bool is_absence(const net::ClientResponse& answer) {
  auto said = json::parse_text(answer.body);
  const json::value* why = said && said->is_object() ? said->get_object().if_contains("error") : nullptr;
  return answer.status == 404 && why != nullptr && why->is_string();
}

Error refusal(const net::ClientResponse& answer) {
  if (answer.status == 401 || answer.status == 403)
    return {Errc::unauthorized, "mediamtx_refused",
            "MediaMTX refuses the user and password of the control API's URL, or this machine's address: see "
            "authInternalUsers in its configuration"};
  if (is_absence(answer)) return {Errc::not_found, "mediamtx_not_found", "MediaMTX has nothing of that name"};
  if (answer.status == 404) return bad_answer();
  return {Errc::unavailable, "mediamtx_failed",
          fmt::format("MediaMTX's control API answered with status {}", answer.status)};
}

Error too_many() {
  return {Errc::too_large, "mediamtx_paths", fmt::format("MediaMTX has more than {} paths", kPagesMax * 100)};
}

Error changing() {
  return {Errc::unavailable, "mediamtx_changing", "MediaMTX's paths change faster than its control API can list them"};
}

// The pages of one reading of the list. Whatever does not fit the pages before it shows that paths came or went.
class Listing {
 public:
  // False where the reading must begin anew.
  bool add(Page page) {
    if (next_ > 0 && (page.paths != paths_ || page.pages != pages_ || page.first <= last_)) return false;
    paths_ = page.paths;
    pages_ = page.pages;
    last_ = page.last;
    std::ranges::move(page.kept, std::back_inserter(found_));
    ++next_;
    return true;
  }
  std::int64_t next() const { return next_; }
  bool complete() const { return next_ > 0 && next_ >= pages_; }
  bool too_long() const { return pages_ > kPagesMax; }
  std::vector<MediaPath> take() { return std::move(found_); }

 private:
  std::int64_t next_ = 0, pages_ = 0, paths_ = 0;
  std::string last_;
  std::vector<MediaPath> found_;
};

}  // namespace

ControlApi::ControlApi(net::HttpClient client, Secret authorization, Duration answer_within, Duration list_within)
    : client_(std::move(client)), authorization_(std::move(authorization)), answer_within_(answer_within),
      list_within_(list_within) {}

Result<std::unique_ptr<ControlApi>> ControlApi::create(asio::io_context& io, const Config& config) {
  std::string url = config.url.reveal();
  Secret authorization = take_user(url);
  net::ClientOptions options{.answer_bytes_max = config.answer_bytes_max, .ca_file = config.ca_file};
  TRY(client, net::HttpClient::create(io, url, std::move(options)));
  return std::unique_ptr<ControlApi>(
      new ControlApi(std::move(client), std::move(authorization), config.answer_within, config.list_within));
}

Async<net::ClientResponse> ControlApi::ask(net::Method method, std::string target, Duration within) {
  net::ClientRequest request{.method = method, .target = std::move(target), .timeout = within, .replayable = true};
  if (!authorization_.empty()) request.headers.emplace_back("Authorization", authorization_.reveal());
  CO_TRY(answer, co_await client_.send(std::move(request)));
  if (answer.status != 200) co_return refusal(answer);
  co_return std::move(answer);
}

Async<std::vector<MediaPath>> ControlApi::list(std::function<bool(std::string_view)> wanted) {
  Instant end = boot_now() + list_within_;
  Listing listing;
  while (!listing.complete()) {
    Duration left = end - boot_now();
    if (left <= 0s) co_return changing();
    std::string target = fmt::format("/v3/paths/list?page={}&itemsPerPage=100", listing.next());
    CO_TRY(answer, co_await ask(net::Method::get, std::move(target), std::min(answer_within_, left)));
    CO_TRY(page, read_page(answer.body, wanted));
    if (!listing.add(std::move(page))) listing = {};
    if (listing.too_long()) co_return too_many();
  }
  co_return listing.take();
}

Async<std::optional<MediaPath>> ControlApi::find(std::string name) {
  auto answer = co_await ask(net::Method::get, "/v3/paths/get/" + percent_encode(name), answer_within_);
  if (!answer && answer.error().code == Errc::not_found) co_return std::optional<MediaPath>();
  if (!answer) co_return std::move(answer).error();
  auto parsed = json::parse_text(answer->body);
  if (!parsed) co_return bad_answer();
  CO_TRY(path, read_path(*parsed));
  co_return std::optional<MediaPath>(std::move(path));
}

Async<Nothing> ControlApi::kick(MediaClient client) {
  auto route = std::ranges::find(kKickRoutes, client.type, &std::pair<std::string_view, std::string_view>::first);
  if (route == std::end(kKickRoutes))
    co_return Error{Errc::unsupported, "mediamtx_kick",
                    fmt::format("MediaMTX cannot end a connection of type '{}'", client.type)};
  std::string target = fmt::format("/v3/{}/kick/{}", route->second, percent_encode(client.id));
  CO_TRY(answer, co_await ask(net::Method::post, std::move(target), answer_within_));
  co_return ok();
}

}  // namespace weir::mediamtx
