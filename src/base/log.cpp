#include "weir/base/log.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>

namespace weir::log {

namespace {
struct Sink {
  std::mutex mutex;
  Config config;
  int file = -1;
  std::map<std::string, std::string, std::less<>> common;
};
Sink& sink() {
  static Sink* the = new Sink;  // outlives static destruction: a late log line must not crash
  return *the;
}
std::atomic<Level> threshold{Level::info};

std::string_view name(Level level) {
  switch (level) {
    case Level::debug: return "debug";
    case Level::info: return "info";
    case Level::warn: return "warn";
    case Level::error: return "error";
    case Level::off: break;
  }
  return "off";
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t wrote = ::write(fd, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;  // a log that cannot be written must not stop the work
    text.remove_prefix(static_cast<size_t>(wrote));
  }
}

// For a terminal: a value may come from outside and must not move the cursor or change colours.
std::string harmless(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    bool c1 = c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    out += c < 0x20 || c == 0x7F || c1 ? '?' : text[i];
    if (c1) ++i;
  }
  return out;
}

std::string readable(Level level, const boost::json::object& fields) {
  constexpr std::string_view colours[] = {"\033[2m", "\033[32m", "\033[33m", "\033[31m"};
  auto text = [&](std::string_view key) {
    const auto* v = fields.if_contains(key);
    return v != nullptr && v->is_string() ? harmless(v->get_string()) : std::string();
  };
  std::string out = fmt::format("\033[2m{}\033[0m {}{:5}\033[0m {}", text("ts").substr(11, 12),
                                colours[static_cast<int>(level)], name(level), text("event"));
  if (auto msg = text("msg"); !msg.empty()) out += "  " + msg;
  for (const auto& [key, value] : fields) {
    if (key == "ts" || key == "level" || key == "event" || key == "msg") continue;
    out += fmt::format(" \033[2m{}=\033[0m{}", std::string_view(key),
                       value.is_string() ? harmless(value.get_string()) : json::to_text(value));
  }
  return out + "\n";
}
}  // namespace

std::optional<Level> parse_level(std::string_view text) {
  for (Level level : {Level::debug, Level::info, Level::warn, Level::error, Level::off})
    if (text == name(level)) return level;
  return std::nullopt;
}

void configure(const Config& config) {
  std::lock_guard lock(sink().mutex);
  sink().config = config;
  threshold = config.level;
  if (sink().file >= 0) ::close(sink().file);
  sink().file = -1;
  if (!config.dir.empty())
    sink().file = ::open((config.dir + "/weir.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

void set_level(Level level) { threshold = level; }
bool enabled(Level level) { return level >= threshold.load(std::memory_order_relaxed); }

void set_common(std::string_view name, std::string value) {
  std::lock_guard lock(sink().mutex);
  sink().common.insert_or_assign(std::string(name), std::move(value));
}

Entry::Entry(Level level, std::string_view event, std::string msg) : on_(enabled(level)), level_(level) {
  if (!on_) return;
  fields_["ts"] = to_iso(wall_now());
  fields_["level"] = name(level);
  fields_["event"] = event;
  if (!msg.empty()) fields_["msg"] = msg;
}

Entry&& Entry::with(std::string_view name, std::string_view value) && {
  if (!on_) return std::move(*this);
  if (valid_utf8(value)) {
    fields_[name] = value;
  } else {  // a log line stays JSON whatever a client sent
    std::string ascii(value);
    for (char& c : ascii)
      if (static_cast<unsigned char>(c) >= 0x80) c = '?';
    fields_[name] = ascii;
  }
  return std::move(*this);
}

Entry::~Entry() {
  if (!on_) return;
  std::lock_guard lock(sink().mutex);
  for (const auto& [key, value] : sink().common) fields_[key] = value;
  std::string line = json::to_text(fields_) + "\n";
  if (sink().file >= 0) write_all(sink().file, line);
  write_all(sink().config.fd, sink().config.readable ? readable(level_, fields_) : line);
}

}  // namespace weir::log
