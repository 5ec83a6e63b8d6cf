#include "weir/base/time.hpp"

#include <fmt/format.h>

#include <charconv>
#include <ctime>

namespace weir {

std::string to_iso(WallTime time) {
  auto ms = std::chrono::floor<std::chrono::milliseconds>(time).time_since_epoch().count();
  auto day_ms = ((ms % 1000) + 1000) % 1000;
  std::time_t s = (ms - day_ms) / 1000;
  std::tm tm{};
  gmtime_r(&s, &tm);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
                     tm.tm_hour, tm.tm_min, tm.tm_sec, day_ms);
}

std::string to_iso_exact(WallTime time) {
  std::string text = to_iso(time);
  if (auto rest = time - std::chrono::floor<std::chrono::milliseconds>(time); rest.count() != 0)
    text.insert(text.size() - 1, fmt::format("{:03}", rest.count()));
  return text;
}

namespace {
// `width` digits at `at`, which moves on; -1 where something else stands.
int digits(std::string_view text, size_t& at, size_t width) {
  if (at + width > text.size()) return -1;
  int number = 0;
  for (size_t end = at + width; at < end; ++at) {
    if (text[at] < '0' || text[at] > '9') return -1;
    number = number * 10 + (text[at] - '0');
  }
  return number;
}
bool literal(std::string_view text, size_t& at, char c) { return at < text.size() && text[at++] == c; }
}  // namespace

// Strict, where strptime takes blanks, short numbers and the 31st of February.
std::optional<WallTime> from_iso(std::string_view text) {
  size_t at = 0;
  int year = digits(text, at, 4);
  if (year < 0 || !literal(text, at, '-')) return std::nullopt;
  int month = digits(text, at, 2);
  if (month < 0 || !literal(text, at, '-')) return std::nullopt;
  int day = digits(text, at, 2);
  if (day < 0 || !literal(text, at, 'T')) return std::nullopt;
  int hour = digits(text, at, 2);
  if (hour < 0 || hour > 23 || !literal(text, at, ':')) return std::nullopt;
  int minute = digits(text, at, 2);
  if (minute < 0 || minute > 59 || !literal(text, at, ':')) return std::nullopt;
  int second = digits(text, at, 2);
  if (second < 0 || second > 59) return std::nullopt;
  Duration fraction{0};
  if (at < text.size() && text[at] == '.') {
    std::int64_t scale = 100'000;
    size_t first = ++at;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, scale /= 10)
      fraction += Duration((text[at] - '0') * scale);
    if (at == first) return std::nullopt;
  }
  if (!literal(text, at, 'Z') || at != text.size()) return std::nullopt;
  std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                   std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second) + fraction;
}

std::optional<Duration> parse_duration(std::string_view text) {
  double amount = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), amount);
  if (failed != std::errc{}) return std::nullopt;
  std::string_view unit(end, text.data() + text.size());
  if (unit == "ms") amount /= 1000;
  else if (unit == "m") amount *= 60;
  else if (unit == "h") amount *= 3600;
  else if (unit == "d") amount *= 86400;
  else if (!unit.empty() && unit != "s") return std::nullopt;
  // Written so that "nan" fails too; 1e9 s are 31 years and far from overflowing.
  if (!(amount >= 0 && amount <= 1e9)) return std::nullopt;
  return from_seconds(amount);
}

}  // namespace weir
