#include "terminal_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace weir::apps {
namespace {

// What a person sees: understands the sequences that the table uses. Characters of three bytes are two columns wide.
class Glass {
 public:
  explicit Glass(TerminalSize size = {}) : size_(size) {}
  bool write(std::string_view text) {
    if (stopped) return false;
    if (text.starts_with("\r\033[")) {
      size_t up = std::stoul(std::string(text.substr(3)));
      EXPECT_LE(up, lines_.size());
      EXPECT_LT(up, size_.rows) << "the cursor stops at the top";
      lines_.resize(lines_.size() - std::min(up, lines_.size()));
      text.remove_prefix(text.find("\033[J") + 3);
    }
    constexpr std::string_view off = "\033[?7l", on = "\033[?7h";
    bool wraps = !text.starts_with(off);
    if (!wraps) {
      EXPECT_TRUE(text.ends_with(on)) << "a shell would find a terminal that does not wrap";
      text = text.substr(off.size(), text.size() - off.size() - on.size());
    }
    for (; !text.empty(); text.remove_prefix(text.find('\n') + 1)) {
      lines_.emplace_back(text.substr(0, text.find('\n')));
      if (wraps && width(lines_.back()) > size_.columns) lines_.emplace_back("(its rest)");
    }
    return true;
  }
  std::string seen() const { return fmt::format("{}", fmt::join(lines_, "|")); }
  bool stopped = false;

 private:
  static size_t width(std::string_view line) {
    auto wide = std::ranges::count_if(line, [](unsigned char c) { return (c & 0xF0) == 0xE0; });
    return columns_of(line) + static_cast<size_t>(wide);
  }
  const TerminalSize size_;
  std::vector<std::string> lines_;
};

TEST(TerminalTable, LinesStayAboveTheTable_WhichIsDrawnInPlace) {
  Glass glass;
  TerminalTable table([&](std::string_view text, bool) { return glass.write(text); });
  table.say("before");
  table.draw("head\ncam-1\ncam-2\n", {.columns = 80});
  table.say("cameras.csv:3: bad");
  EXPECT_EQ(glass.seen(), "before|cameras.csv:3: bad|head|cam-1|cam-2");
  table.draw("head 2\nüüüü\n", {.columns = 4});
  EXPECT_EQ(glass.seen(), "before|cameras.csv:3: bad|hea|üüü");
  glass.stopped = true;
  table.draw("lost\n", {.columns = 80});
  table.say("lost");
  glass.stopped = false;
  table.draw("head 3\n", {.columns = 80});
  EXPECT_EQ(glass.seen(), "before|cameras.csv:3: bad|head 3");
}

TEST(TerminalTable, WideCharactersAndFewRows_LeaveTheTableInItsPlace) {
  const TerminalSize size{.rows = 4, .columns = 8};
  Glass glass(size);
  TerminalTable table([&](std::string_view text, bool) { return glass.write(text); });
  table.draw("大門大門大門\ngate\n", size);
  table.say("news");
  table.draw("大門大門大門\ngate\n", size);
  EXPECT_EQ(glass.seen(), "news|大門大門大門|gate");
  table.draw("1\n2\n3\n4\n5\n", size);
  EXPECT_EQ(glass.seen(), "news|1|2|3") << "and the cursor below";
  table.draw("1\n2\n3\n4\n5\n", size);
  EXPECT_EQ(glass.seen(), "news|1|2|3");
}

}  // namespace
}  // namespace weir::apps
