// The command line: from words to a command and its arguments. The only file that knows CLI11.
// Plain functions; main thread only.
#pragma once

#include "command.hpp"

namespace weir::apps {

struct Parsed {
  const Command* command = nullptr;  // none where only `help` is to be printed
  Arguments arguments = {};
  std::string help = {};
};

// `words` are those after the program's name, `program` what a person types for it. A usage error ends with the hint to
// the right --help.
Result<Parsed> parse_command_line(std::span<const Command> commands, const std::vector<std::string>& words,
                                  std::string_view program = "weir");

}  // namespace weir::apps
