#include "terminal_table.hpp"

#include <fmt/format.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace weir::apps {

namespace {

// A line that wraps would be drawn over only in part.
std::string shortened(std::string_view line, size_t columns) {
  std::string out;
  size_t used = 0;
  for (char c : line) {
    bool starts = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (starts && ++used >= columns) break;
    out += c;
  }
  return out;
}

// How wide a character is, only the terminal knows: while it is told not to wrap, a line stays one.
std::string unwrapped(std::string_view lines) { return fmt::format("\033[?7l{}\033[?7h", lines); }

}  // namespace

TerminalSize terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {.rows = size.ws_row, .columns = size.ws_col};
}

// The cursor need not be in the first column: a terminal shows what is typed, Ctrl-C included.
std::string TerminalTable::erasing() const {
  auto lines = std::ranges::count(drawn_, '\n');
  return lines == 0 ? "" : fmt::format("\r\033[{}A\033[J", lines);
}

// A line that has left the screen at its top cannot be erased: the last row is the cursor's.
void TerminalTable::draw(std::string_view text, TerminalSize size) {
  std::string drawn;
  size_t end = 0;
  for (size_t row = 1; !text.empty() && row < size.rows; ++row, text.remove_prefix(std::min(end + 1, text.size()))) {
    end = std::min(text.find('\n'), text.size());
    drawn += shortened(text.substr(0, end), size.columns) + "\n";
  }
  std::lock_guard lock(mutex_);
  if (write_(erasing() + unwrapped(drawn), false)) drawn_ = std::move(drawn);
}

void TerminalTable::say(std::string_view line) {
  std::lock_guard lock(mutex_);
  if (!write_(fmt::format("{}{}\n", erasing(), line), true)) return;
  std::string below = std::exchange(drawn_, {});
  if (!below.empty() && write_(unwrapped(below), false)) drawn_ = std::move(below);
}

}  // namespace weir::apps
