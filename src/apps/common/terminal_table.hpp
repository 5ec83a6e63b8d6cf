// TerminalTable: a drawing on a terminal in place of the one before, and lines that stay above it.
//
// A drawing that the terminal does not take at once is left out: the next one follows soon. Any thread.
#pragma once

#include "print.hpp"

#include <functional>
#include <mutex>

namespace weir::apps {

struct TerminalSize {
  size_t rows = 24, columns = 80;
};
// The size of the terminal that stdout is.
TerminalSize terminal_size();

class TerminalTable {
 public:
  using Write = std::function<bool(std::string_view text, bool counted)>;
  explicit TerminalTable(Write write = offer) : write_(std::move(write)) {}

  // Whole lines; those that do not fit into the rows are left out, and what does not fit into the columns is cut off.
  void draw(std::string_view text, TerminalSize size);
  void say(std::string_view line);

 private:
  std::string erasing() const;

  const Write write_;
  std::mutex mutex_;
  std::string drawn_;  // what stands right above the cursor
};

}  // namespace weir::apps
