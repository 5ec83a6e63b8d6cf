// The header of an answer as bytes. Whatever a handler puts into a Response, it stays one well-formed header. Pure.
#pragma once

#include "weir/net/http.hpp"

namespace weir::net {

inline constexpr std::string_view kEventStream = "text/event-stream";

struct HeadFacts {
  bool http11 = true;
  bool keep_alive = true;
  std::string_view request_id;
  std::string_view date;
};
// Appends to `out`. A stream has no length: it is chunked where the client understands that, else it ends by closing.
void write_head(std::string& out, const Response& response, const HeadFacts& facts);

bool has_body(int status);
// Nothing where it is not known before the end.
std::optional<std::uint64_t> length_of(const Response& response);
bool same_ignoring_case(std::string_view a, std::string_view b);

}  // namespace weir::net
