#include "weir/base/log.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"
#include "weir/base/live_output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>

namespace weir::log {

namespace {
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

// A log line stays JSON whatever a client sent.
std::string as_utf8(std::string_view value) {
  std::string out(value);
  if (!valid_utf8(value))
    for (char& c : out)
      if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  return out;
}

boost::json::object begun(Level level, std::string_view event, std::string_view msg) {
  boost::json::object fields;
  fields["ts"] = to_iso(wall_now());
  fields["level"] = name(level);
  fields["event"] = event;
  if (!msg.empty()) fields["msg"] = as_utf8(msg);
  return fields;
}

struct Sink {
  std::mutex mutex;
  bool readable = false;
  std::string path;
  std::int64_t file_bytes = 0, file_bytes_max = 0;
  int opened = -1;
  LiveOutput file{-1};
  LiveOutput out = output(2, false);
  std::map<std::string, std::string, std::less<>> common;

  std::string line(Level level, boost::json::object& fields, bool for_people) const {
    for (const auto& [key, value] : common) fields[key] = value;
    return for_people ? log::readable(level, fields) : json::to_text(fields) + "\n";
  }
  void open_file() {
    if (opened >= 0) ::close(opened);
    opened = path.empty() ? -1 : ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    file = output(opened, false);
    struct stat about {};
    file_bytes = opened >= 0 && ::fstat(opened, &about) == 0 ? about.st_size : 0;
  }
  void write_to_file(const std::string& text) {
    if (opened < 0) return;
    if (file_bytes_max > 0 && file_bytes >= file_bytes_max && ::rename(path.c_str(), (path + ".1").c_str()) == 0) open_file();
    if (file.write(text)) file_bytes += static_cast<std::int64_t>(text.size());
  }
  // Called by `write`, under the mutex.
  LiveOutput output(int fd, bool for_people) const {
    return LiveOutput(fd, [this, for_people](std::uint64_t lines) {
      auto fields = begun(Level::warn, "log.dropped", "the reader of this log did not keep up; lines are missing here");
      fields["lines"] = lines;
      return line(Level::warn, fields, for_people);
    });
  }
};
Sink& sink() {
  static Sink* the = new Sink;  // outlives static destruction: a late log line must not crash
  return *the;
}
}  // namespace

std::optional<Level> parse_level(std::string_view text) {
  for (Level level : {Level::debug, Level::info, Level::warn, Level::error, Level::off})
    if (text == name(level)) return level;
  return std::nullopt;
}

void configure(const Config& config) {
  Sink& to = sink();
  std::lock_guard lock(to.mutex);
  threshold = config.level;
  to.readable = config.readable;
  to.out = to.output(config.fd, config.readable);
  to.path = config.file;
  to.file_bytes_max = config.file_bytes_max;
  to.open_file();
}

void set_level(Level level) { threshold = level; }
bool enabled(Level level) { return level >= threshold.load(std::memory_order_relaxed); }

void set_common(std::string_view name, std::string value) {
  std::lock_guard lock(sink().mutex);
  sink().common.insert_or_assign(std::string(name), std::move(value));
}

Entry::Entry(Level level, std::string_view event, std::string msg) : on_(enabled(level)), level_(level) {
  if (on_) fields_ = begun(level, event, msg);
}

Entry&& Entry::with(std::string_view name, std::string_view value) && {
  if (on_) fields_[name] = as_utf8(value);
  return std::move(*this);
}

Entry::~Entry() {
  if (!on_) return;
  Sink& to = sink();
  std::lock_guard lock(to.mutex);
  if (to.opened >= 0) to.write_to_file(to.line(level_, fields_, false));
  to.out.write(to.line(level_, fields_, to.readable));
}

}  // namespace weir::log
