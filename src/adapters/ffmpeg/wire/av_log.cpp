#include "av_log.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"

#include <boost/url/parse.hpp>

extern "C" {
#include <libavutil/base64.h>
#include <libavutil/log.h>
}

#include <charconv>
#include <cstring>
#include <map>
#include <mutex>

namespace weir::ffmpeg {

namespace {
constexpr int kShownMax = 5;  // lines a tap and window
constexpr Duration kWindow = 10s;

thread_local LogTap* listening = nullptr;

// The credentials of all living taps. Lives as long as the process: the callback may come at its very end.
class Credentials {
 public:
  static Credentials& get() {
    static auto* all = new Credentials;
    return *all;
  }
  void add(const LogTap* tap, Redactor redactor) {
    std::lock_guard lock(mutex_);
    redactors_[tap] = std::move(redactor);
  }
  void remove(const LogTap* tap) {
    std::lock_guard lock(mutex_);
    redactors_.erase(tap);
  }
  std::string redact(std::string_view text) {
    std::lock_guard lock(mutex_);
    std::string out(text);
    for (const auto& [tap, redactor] : redactors_) out = redactor.redact(out);
    return out;
  }

 private:
  std::mutex mutex_;
  std::map<const LogTap*, Redactor> redactors_;
};

void write(std::string_view speaker, int level, std::string_view text) {
  std::string safe = Credentials::get().redact(text);
  if (level <= AV_LOG_ERROR)
    log::warn("ffmpeg", std::move(safe)).with("part", speaker);
  else
    log::debug("ffmpeg", std::move(safe)).with("part", speaker);
}

// The protocol's or decoder's short name, e.g. "tls", "h264".
std::string_view speaker_of(void* context) {
  const AVClass* type = context != nullptr ? *static_cast<const AVClass**>(context) : nullptr;
  return type != nullptr ? type->item_name(context) : "";
}

void callback(void* context, int level, const char* format, va_list arguments) {
  LogTap* tap = listening;
  if (level > AV_LOG_VERBOSE) {
    // The RTSP client traces every line that it is given, the HTTP client every status.
    if (tap != nullptr && std::strncmp(format, "line='", 6) == 0) tap->answer(va_arg(arguments, char*));
    if (tap != nullptr && std::strncmp(format, "http_code=", 10) == 0) tap->http_status(va_arg(arguments, int));
    if (tap != nullptr && std::strncmp(format, "Sending publish command", 23) == 0) tap->heard.publishing = true;
    return;
  }
  char text[4096];
  int length = std::vsnprintf(text, sizeof text, format, arguments);
  if (length <= 0) return;
  std::string_view line(text, std::min(static_cast<size_t>(length), sizeof text - 1));
  while (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  if (tap != nullptr)
    tap->line(speaker_of(context), level, line);
  else if (level <= AV_LOG_WARNING)
    write(speaker_of(context), level, line);
}

// User and password as Basic authentication says them: a camera may repeat what it was told.
std::string basic_login(const Secret& url) {
  auto parsed = boost::urls::parse_uri(url.reveal());
  if (!parsed || !parsed->has_userinfo()) return {};
  std::string login = percent_decode(std::string_view(parsed->encoded_userinfo()));
  std::string encoded(AV_BASE64_SIZE(login.size()), '\0');
  av_base64_encode(encoded.data(), static_cast<int>(encoded.size()),
                   reinterpret_cast<const std::uint8_t*>(login.data()), static_cast<int>(login.size()));
  encoded.pop_back();  // the terminating zero
  return encoded;
}

std::string_view after(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : std::string_view();
}
}  // namespace

void take_over_log() {
  static std::once_flag once;
  std::call_once(once, [] { av_log_set_callback(callback); });
}

LogTap::LogTap(const Secret& url, const std::vector<Secret>& more) {
  take_over_log();
  Redactor redactor;
  redactor.learn_url(url.reveal());
  for (const Secret& each : more) redactor.learn(each.reveal());
  redactor.learn(basic_login(url));
  Credentials::get().add(this, std::move(redactor));
}
LogTap::~LogTap() { Credentials::get().remove(this); }

LogTap::Listening::Listening(LogTap& tap) : before_(std::exchange(listening, &tap)) {}
LogTap::Listening::~Listening() { listening = before_; }

void LogTap::answer(char* line) {
  heard.answered = true;
  // FFmpeg sends to whatever host is named as the packets' source, after resolving it. No option forbids that, but this
  // is the very buffer that it reads next; without a source it stays with the address that it was given.
  if (strncasecmp(line, "Transport:", 10) != 0) return;
  while (char* source = std::strstr(line, "source")) *source = '-';
}

void LogTap::http_status(int status) {
  heard.answered = true;
  heard.status = status;
  heard.redirected = status >= 300 && status < 400;
}

void LogTap::line(std::string_view speaker, int level, std::string_view text) {
  if (text.starts_with("Successfully connected to ")) heard.connected = true;
  if (speaker == "tls" && level <= AV_LOG_ERROR) heard.tls = true;
  if (text.starts_with("SDP:")) heard.audio = text.find("\nm=audio") != std::string_view::npos;
  if (text.starts_with("Status 3") && text.find("Redirecting to") != std::string_view::npos) {
    heard.redirected = true;
    if (on_redirect) on_redirect();
  }
  // Below that level FFmpeg goes on: a refused releaseStream or FCPublish, or a request for credentials that it has.
  if (std::string_view rest = after(text, "Server error: "); !rest.empty() && level <= AV_LOG_ERROR)
    heard.complaint = Credentials::get().redact(rest);
  if (std::string_view rest = after(text, "method "); !rest.empty()) {
    size_t colon = rest.find(" failed: ");
    if (colon != std::string_view::npos) {
      heard.method = rest.substr(0, colon);
      std::from_chars(rest.data() + colon + 9, rest.data() + rest.size(), heard.status);
    }
  }
  if ((quiet || level > AV_LOG_WARNING) && !log::enabled(log::Level::debug)) return;
  Instant now = boot_now();
  if (now - window_ > kWindow) {
    if (hidden_ > 0) log::debug("ffmpeg", fmt::format("{} more lines were not shown", hidden_));
    window_ = now;
    shown_ = hidden_ = 0;
  }
  if (shown_ == kShownMax) return void(++hidden_);
  ++shown_;
  write(speaker, level, text);
}

}  // namespace weir::ffmpeg
