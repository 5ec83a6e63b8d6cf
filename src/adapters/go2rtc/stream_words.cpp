#include "stream_words.hpp"

#include "weir/base/json.hpp"
#include "weir/net/sha256.hpp"

#include <algorithm>

namespace weir::go2rtc {

namespace {

using restart::StreamErrorCode;

constexpr size_t kChecksumLetters = 16;

// Neither user nor fragment; newer versions of go2rtc show "***" for the user.
std::string bare(std::string_view url) {
  url = url.substr(0, url.find('#'));
  size_t begin = url.find("://");
  if (begin == std::string_view::npos) return std::string(url);
  begin += 3;
  std::string_view authority = url.substr(begin, url.find_first_of("/?", begin) - begin);
  size_t user = authority.rfind('@');
  return std::string(url.substr(0, begin)) +
         std::string(url.substr(user == std::string_view::npos ? begin : begin + user + 1));
}

const json::array* items(const json::value& of, std::string_view name) {
  const json::value* found = of.is_object() ? of.get_object().if_contains(name) : nullptr;
  return found != nullptr && found->is_array() ? &found->get_array() : nullptr;
}
std::string_view text(const json::value& of, std::string_view name) {
  const json::value* found = of.is_object() ? of.get_object().if_contains(name) : nullptr;
  return found != nullptr && found->is_string() ? std::string_view(found->get_string()) : std::string_view();
}
std::int64_t number(const json::value& of, std::string_view name) {
  const json::value* found = of.is_object() ? of.get_object().if_contains(name) : nullptr;
  return found != nullptr && found->is_int64() ? found->get_int64() : 0;
}

struct Reason {
  std::string_view word;
  StreamErrorCode code;
};
// go2rtc's words for what it met, as they stand in its log; the first that fits.
constexpr Reason kReasons[] = {{"user/pass", StreamErrorCode::rtsp_auth_failed},
                               {"connection refused", StreamErrorCode::tcp_refused},
                               {"no such host", StreamErrorCode::dns_failed},
                               {"i/o timeout", StreamErrorCode::tcp_timeout},
                               {"unreachable", StreamErrorCode::tcp_timeout},
                               {"no route to host", StreamErrorCode::tcp_timeout},
                               {"tls: ", StreamErrorCode::tls_failed},
                               {"x509: ", StreamErrorCode::tls_failed},
                               {"wrong response on DESCRIBE", StreamErrorCode::rtsp_not_found}};

}  // namespace

std::string stream_name(const CameraId& camera, const Secret& url) {
  net::Sha256 sum;
  sum.add(bare(url.reveal()));
  return fmt::format("{}~{}", camera.str(), sum.hex().substr(0, kChecksumLetters));
}

Secret source_of(const Secret& url, Duration patience) {
  std::string_view whole = url.reveal();
  auto whole_seconds = std::chrono::ceil<std::chrono::seconds>(patience).count();
  return Secret(
      fmt::format("{}#media=video#backchannel=0#timeout={}", whole.substr(0, whole.find('#')), whole_seconds));
}

Result<Look> read_look(std::string_view answer, const Secret& source) {
  auto said = json::parse_text(answer);
  const json::array* producers = said ? items(*said, "producers") : nullptr;
  if (producers == nullptr) return Error{Errc::unavailable, "go2rtc", "the answer is not go2rtc's"};
  Look look;
  for (const json::value& producer : *producers) {
    look.ours = look.ours && bare(text(producer, "url")) == bare(source.reveal());
    if (const json::array* receivers = items(producer, "receivers"))
      for (const json::value& each : *receivers)
        look.bytes += static_cast<std::uint64_t>(std::max<std::int64_t>(0, number(each, "bytes")));
  }
  if (const json::array* consumers = items(*said, "consumers")) look.readers = consumers->size();
  return look;
}

std::optional<restart::StreamError> read_reason(std::string_view log, std::string_view name, WallTime since) {
  std::int64_t since_ms = std::chrono::duration_cast<std::chrono::milliseconds>(since.time_since_epoch()).count();
  while (!log.empty()) {
    size_t begin = log.find_last_of('\n', log.size() - 1);
    std::string_view line = log.substr(begin == std::string_view::npos ? 0 : begin + 1);
    log = begin == std::string_view::npos ? std::string_view() : log.substr(0, begin);
    auto said = json::parse_text(line);
    if (!said || text(*said, "stream") != name) continue;
    if (number(*said, "time") < since_ms) return {};
    std::string_view error = text(*said, "error");
    auto reason =
        std::ranges::find_if(kReasons, [&](const Reason& each) { return error.find(each.word) != error.npos; });
    StreamErrorCode code = reason == std::end(kReasons) ? StreamErrorCode::rtsp_protocol : reason->code;
    return restart::StreamError{code, fmt::format("go2rtc cannot reach the camera: {}", error)};
  }
  return {};
}

}  // namespace weir::go2rtc
