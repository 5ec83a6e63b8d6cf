#include "weir/net/addressee.hpp"

#include <fmt/format.h>

namespace weir::net {

bool names_loopback(std::string_view host) {
  if (size_t port = host.rfind(':'); port != std::string_view::npos && host.find(']', port) == std::string_view::npos)
    host = host.substr(0, port);
  return host == "127.0.0.1" || host == "localhost" || host == "[::1]";
}

Status meant_for(const Request& request, std::string_view runner) {
  auto named = request.query_value("runner_id");
  if (!named || *named == runner) return ok();
  return Error{Errc::not_found, "another_runner", fmt::format("this is runner {}, not {}", runner, *named)};
}

}  // namespace weir::net
