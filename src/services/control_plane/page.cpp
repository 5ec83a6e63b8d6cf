#include "page.hpp"

#include "request.hpp"

#include "weir/net/token.hpp"

#include <charconv>

namespace weir::control_plane {

namespace {
// Places are ids, and pairs of them joined by a line break.
bool sane_place(std::string_view place) {
  bool control = std::ranges::any_of(place, [](unsigned char c) { return (c < 0x20 && c != '\n') || c == 0x7F; });
  return !place.empty() && place.size() <= 512 && !control && valid_utf8(place);
}
}  // namespace

Result<Page> read_page(const net::Request& request) {
  Page page;
  if (auto limit = request.query_value("limit"); limit && !limit->empty()) {
    const char* end = limit->data() + limit->size();
    auto [stopped, failed] = std::from_chars(limit->data(), end, page.limit);
    if (failed != std::errc() || stopped != end || page.limit < 1 || page.limit > kLimitMax)
      return bad_field("limit", fmt::format("must be a whole number between 1 and {}", kLimitMax));
  }
  if (auto cursor = request.query_value("cursor"); cursor && !cursor->empty()) {
    auto place = net::from_base64url(*cursor);
    if (!place || !sane_place(*place)) return bad_field("cursor", "must be the next_cursor of an earlier answer");
    page.after = *std::move(place);
  }
  return page;
}

std::string cursor_of(std::string_view place) { return net::base64url(place); }

}  // namespace weir::control_plane
