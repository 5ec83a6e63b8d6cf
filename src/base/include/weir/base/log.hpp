// Structured logging: one JSON object a line on stderr, or readable coloured lines on a terminal.
//
//   log::info("lease.stolen", "took over an expired lease").with("camera_uuid", id).with("version", v);
//
// The line is written when the entry goes out of scope. Values are strings, numbers or booleans; a Secret does not
// compile, and a URL is logged through `redact_url` only. A line never waits for its reader: what a full pipe or a
// stopped terminal does not take is dropped, and `log.dropped` says how many lines as soon as it takes one again.
// Any thread may log; lines never interleave.
#pragma once

#include "weir/base/ids.hpp"

#include <boost/json/object.hpp>

#include <concepts>
#include <optional>
#include <string>
#include <string_view>

namespace weir::log {

enum class Level { debug, info, warn, error, off };
std::optional<Level> parse_level(std::string_view text);

struct Config {
  Level level = Level::info;
  bool readable = false;       // coloured text instead of JSON
  int fd = 2;
  std::string file = {};       // where set, the JSON lines also go there
  std::int64_t file_bytes_max = 0;  // a file that has reached this becomes FILE.1, and a new one begins; 0: no bound
};
void configure(const Config& config);
void set_level(Level level);
bool enabled(Level level);
// Fields that stand in every line of this process, e.g. runner_id.
void set_common(std::string_view name, std::string value);

class Entry {
 public:
  Entry(Level level, std::string_view event, std::string msg);
  Entry(Entry&&) = delete;
  ~Entry();

  template <class Tag>
  Entry&& with(std::string_view name, const Id<Tag>& id) && {
    if (on_ && !id.empty()) fields_[name] = id.str();
    return std::move(*this);
  }
  Entry&& with(std::string_view name, std::string_view value) &&;
  template <class T>
    requires std::is_arithmetic_v<T>
  Entry&& with(std::string_view name, T value) && {
    if (on_) fields_[name] = value;
    return std::move(*this);
  }

 private:
  const bool on_;
  Level level_;
  boost::json::object fields_;
};

inline Entry debug(std::string_view event, std::string msg = {}) { return {Level::debug, event, std::move(msg)}; }
inline Entry info(std::string_view event, std::string msg = {}) { return {Level::info, event, std::move(msg)}; }
inline Entry warn(std::string_view event, std::string msg = {}) { return {Level::warn, event, std::move(msg)}; }
inline Entry error(std::string_view event, std::string msg = {}) { return {Level::error, event, std::move(msg)}; }

}  // namespace weir::log
