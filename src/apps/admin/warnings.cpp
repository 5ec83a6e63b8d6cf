#include "warnings.hpp"

#include "common/print.hpp"

#include <cstdio>

namespace weir::apps {

json::array warnings_in(const json::value& answer) {
  const json::value* found = answer.is_object() ? answer.get_object().if_contains("warnings") : nullptr;
  return found != nullptr && found->is_array() ? found->get_array() : json::array();
}

std::vector<std::string> messages_of(const json::array& warnings) {
  std::vector<std::string> out;
  for (const json::value& each : warnings) out.push_back(cell(each, "message"));
  return out;
}

void warn(std::string_view message) {
  std::string line = fmt::format("warning: {}\n", harmless(message));
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void warn_of(const json::value& answer) {
  for (const std::string& message : messages_of(warnings_in(answer))) warn(message);
}

}  // namespace weir::apps
