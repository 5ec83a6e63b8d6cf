// error_once: a line about each thing the first time that it is seen, and never again in this process.
//
// For a mistake that every reading of a list finds again in the same thing. After 10'000 things no further ones are
// logged. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace weir::log {

// A thing is told apart by `event` and `value`, which stands in the line as `field`.
void error_once(std::string_view event, const std::string& message, std::string_view field, std::string_view value);

}  // namespace weir::log
