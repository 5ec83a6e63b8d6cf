#include "weir/ports/coordination.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir {

Error stale_epoch() {
  return {Errc::conflict, "stale_epoch", "another master writes under a higher epoch", {}};
}
Error no_epoch() {
  return {Errc::conflict, "no_epoch", "this epoch is not open: the master must renew its lease and open it first", {}};
}
Error bad_stream_id() {
  return {Errc::invalid, "bad_stream_id", "a detection's id is two numbers with a hyphen between them", {}};
}

bool is_stream_id(std::string_view id) {
  size_t hyphen = id.find('-');
  if (hyphen == std::string_view::npos) return false;
  auto number = [](std::string_view text) {
    return !text.empty() && text.size() <= 19 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  };
  return number(id.substr(0, hyphen)) && number(id.substr(hyphen + 1));
}

std::string with_stream_id(std::string_view id, std::string_view object) {
  return fmt::format(R"({{"streamId":"{}",{})", id, object.substr(1));
}

}  // namespace weir
