#include "weir/net/addressee.hpp"

#include <fmt/format.h>

namespace weir::net {

Status meant_for(const Request& request, std::string_view runner) {
  auto named = request.query_value("runner_id");
  if (!named || *named == runner) return ok();
  return Error{Errc::not_found, "another_runner", fmt::format("this is runner {}, not {}", runner, *named)};
}

}  // namespace weir::net
