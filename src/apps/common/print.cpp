#include "print.hpp"

#include "weir/base/live_output.hpp"

#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>

namespace weir::apps {

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

size_t columns_of(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

std::string Table::text() const {
  std::vector<size_t> widths;
  for (const auto& column : columns_) widths.push_back(columns_of(column));
  std::vector<std::vector<std::string>> lines{columns_};
  for (const auto& row : rows_) {
    auto& line = lines.emplace_back();
    for (size_t i = 0; i < columns_.size(); ++i) {
      line.push_back(i < row.size() && !row[i].empty() ? harmless(row[i]) : "-");
      widths[i] = std::max(widths[i], columns_of(line[i]));
    }
  }
  std::string out;
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      out += line[i];
      if (i + 1 < line.size()) out.append(widths[i] - columns_of(line[i]) + 2, ' ');
    }
    out += '\n';
  }
  return out;
}

namespace {
std::string shown(const json::value& v) {
  if (v.is_null()) return "-";
  if (v.is_string()) return std::string(v.get_string());
  if (v.is_bool()) return v.get_bool() ? "yes" : "no";
  if (v.is_double()) return fmt::format("{}", v.get_double());
  return json::to_text(v);
}
}  // namespace

std::string cell(const json::value& object, std::string_view field) {
  const json::value* v = object.is_object() ? object.get_object().if_contains(field) : nullptr;
  return v == nullptr ? "-" : shown(*v);
}

std::string field_lines(const json::object& object) {
  size_t width = 0;
  for (const auto& member : object) width = std::max(width, member.key().size());
  std::string out;
  for (const auto& member : object)
    out += fmt::format("{:{}}  {}\n", harmless(member.key()), width, harmless(shown(member.value())));
  return out;
}

namespace {
int g_print_errno = 0;  // of the first text that was not taken
}

void print(std::string_view text) {
  bool taken = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!taken && errno != EBADF && g_print_errno == 0) g_print_errno = errno;
}
void print_line(std::string_view text) { print(fmt::format("{}\n", text)); }
void print_json(const json::value& v) { print_line(json::to_text(v)); }

std::optional<Error> take_print_failure() {
  int why = std::exchange(g_print_errno, 0);
  if (why == 0) return std::nullopt;
  return Error{Errc::unavailable, why == EPIPE ? "closed_pipe" : "output",
               fmt::format("cannot write to standard output: {}", std::strerror(why))};
}

bool printing_makes_sense() {
  pollfd out{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  bool unread = ::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
  return !unread && g_print_errno == 0;
}

bool offer(std::string_view text, bool counted) {
  static std::mutex mutex;
  static LiveOutput out(STDOUT_FILENO, [](std::uint64_t lines) {
    return fmt::format("weir: nobody read this output; lines dropped: {}\n", lines);
  });
  std::lock_guard lock(mutex);
  return out.write(text, counted);
}
void offer_line(std::string_view text) { offer(fmt::format("{}\n", text)); }

void complain(std::string_view message) {
  std::string line = fmt::format("weir: {}\n", harmless(message));
  std::fwrite(line.data(), 1, line.size(), stderr);
}

bool terminal_gone() {
  auto closed = [](int fd) {
    termios modes{};
    return ::tcgetattr(fd, &modes) != 0 && errno == EIO;
  };
  return closed(STDIN_FILENO) || closed(STDOUT_FILENO) || closed(STDERR_FILENO);
}

}  // namespace weir::apps
