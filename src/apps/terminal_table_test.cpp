#include "terminal_table.hpp"

#include <gtest/gtest.h>

namespace weir::apps {
namespace {

// What a person sees: understands the one sequence that the table uses.
class Glass {
 public:
  bool write(std::string_view text) {
    if (stopped) return false;
    if (text.starts_with("\r\033[")) {
      size_t up = std::stoul(std::string(text.substr(3)));
      EXPECT_LE(up, lines_.size());
      lines_.resize(lines_.size() - std::min(up, lines_.size()));
      text.remove_prefix(text.find("\033[J") + 3);
    }
    for (; !text.empty(); text.remove_prefix(text.find('\n') + 1))
      lines_.emplace_back(text.substr(0, text.find('\n')));
    return true;
  }
  std::string seen() const { return fmt::format("{}", fmt::join(lines_, "|")); }
  bool stopped = false;

 private:
  std::vector<std::string> lines_;
};

TEST(TerminalTable, LinesStayAboveTheTable_WhichIsDrawnInPlace) {
  Glass glass;
  TerminalTable table([&](std::string_view text, bool) { return glass.write(text); });
  table.say("before");
  table.draw("head\ncam-1\ncam-2\n", 80);
  table.say("cameras.csv:3: bad");
  EXPECT_EQ(glass.seen(), "before|cameras.csv:3: bad|head|cam-1|cam-2");
  table.draw("head 2\nüüüü\n", 4);
  EXPECT_EQ(glass.seen(), "before|cameras.csv:3: bad|hea|üüü");
  glass.stopped = true;
  table.draw("lost\n", 80);
  table.say("lost");
  glass.stopped = false;
  table.draw("head 3\n", 80);
  EXPECT_EQ(glass.seen(), "before|cameras.csv:3: bad|head 3");
}

}  // namespace
}  // namespace weir::apps
