#include "weir/ports/streams.hpp"

#include "weir/base/json.hpp"

namespace weir {

Error stale_word() {
  return {Errc::conflict, "stale_version", "another process speaks for this stream, or the lease has a newer version"};
}

boost::json::object read_object(std::string_view text) {
  auto parsed = json::parse_text(text);
  return parsed && parsed->is_object() ? std::move(parsed->get_object()) : boost::json::object();
}

}  // namespace weir
