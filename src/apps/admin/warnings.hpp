// The warnings in a control plane's answer about a camera or a zone, printed for the person who gave the order.
//
// They go to stderr, a line each that begins with "warning: ": what was ordered is done, and stdout stays for programs.
// Main thread only, but for what only reads.
#pragma once

#include "weir/base/json.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace weir::apps {

// The list in an answer; empty where an older control plane says none.
json::array warnings_in(const json::value& answer);
std::vector<std::string> messages_of(const json::array& warnings);

void warn(std::string_view message);
// Every warning in the answer.
void warn_of(const json::value& answer);

}  // namespace weir::apps
