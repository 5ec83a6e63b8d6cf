// Page: a piece of a list. `limit` says how many, `cursor` where the last piece ended; both come from the query.
//
// A cursor is opaque to clients: base64url of the last item's place. The store is asked for one more than the limit,
// which tells whether there is a next page. Plain values.
#pragma once

#include "weir/base/json.hpp"
#include "weir/net/http.hpp"

#include <string>
#include <vector>

namespace weir::control_plane {

inline constexpr int kLimitDefault = 100;
inline constexpr int kLimitMax = 1000;

struct Page {
  int limit = kLimitDefault;
  std::string after = {};  // "" from the start
  int ask() const { return limit + 1; }
};

Result<Page> read_page(const net::Request& request);
std::string cursor_of(std::string_view place);

// {"items":[…],"next_cursor":…} of what the store gave for `page`; `write` makes one item, `place` names it.
template <class T, class Place, class Write>
json::object listed(const std::vector<T>& found, const Page& page, Place place, Write write) {
  size_t shown = std::min(found.size(), static_cast<size_t>(page.limit));
  json::array items;
  items.reserve(shown);
  for (size_t i = 0; i < shown; ++i) items.push_back(write(found[i]));
  json::value next = nullptr;
  if (shown < found.size()) next = cursor_of(place(found[shown - 1]));
  return {{"items", std::move(items)}, {"next_cursor", std::move(next)}};
}

}  // namespace weir::control_plane
