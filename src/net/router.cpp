#include "weir/net/router.hpp"

#include "target.hpp"

#include <algorithm>
#include <array>

namespace weir::net {

namespace {
constexpr size_t kSegmentsMax = 16;

// The undecoded segments of a path; views into it. A path with more than any route has matches none.
struct Segments {
  std::array<std::string_view, kSegmentsMax> at;
  size_t count = 0;
  bool too_many = false;
};

Segments split(std::string_view path) {
  Segments out;
  if (!path.empty() && path.front() == '/') path.remove_prefix(1);
  if (!path.empty() && path.back() == '/') path.remove_suffix(1);
  for (bool more = !path.empty(); more;) {
    if (out.count == kSegmentsMax) {
      out.too_many = true;
      return out;
    }
    size_t slash = path.find('/');
    out.at[out.count++] = path.substr(0, slash);
    more = slash != std::string_view::npos;
    if (more) path.remove_prefix(slash + 1);
  }
  return out;
}

// What is left of "/api/v1/x" is "/v1/x", so each route is kept once. The same holds for "/api/readyz": a client
// whose address is https://host/api asks for everything there.
Segments split_request(std::string_view path) {
  Segments out = split(path);
  if (out.count >= 2 && out.at[0] == "api") {
    std::shift_left(out.at.begin(), out.at.begin() + static_cast<std::ptrdiff_t>(out.count), 1);
    --out.count;
  }
  return out;
}

bool is_param(std::string_view segment) { return segment.size() > 2 && segment.front() == '{'; }

bool same_literal(std::string_view raw, std::string_view literal) {
  if (raw.find('%') == std::string_view::npos) return raw == literal;
  auto decoded = decode_text(raw);
  return decoded && *decoded == literal;
}

bool matches(const std::vector<std::string>& pattern, const Segments& path) {
  for (size_t i = 0; i < path.count; ++i) {
    if (is_param(pattern[i]) ? path.at[i].empty() : !same_literal(path.at[i], pattern[i])) return false;
  }
  return true;
}

// Shorter patterns first, and a word before a {name} at the same place: "/v1/leases/events" beats "/v1/leases/{id}",
// with every method: no id equals a word of a route.
bool before(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  if (a.size() != b.size()) return a.size() < b.size();
  return std::ranges::lexicographical_compare(a, b, {}, is_param, is_param);
}

bool answers(Method route, Method asked) {
  return route == asked || (asked == Method::head && route == Method::get);
}

Status fill_params(const std::vector<std::string>& pattern, const Segments& path, Request& request) {
  request.params.clear();
  for (size_t i = 0; i < path.count; ++i) {
    if (!is_param(pattern[i])) continue;
    auto value = decode_text(path.at[i]);
    if (!value) return target_error("path", "must be percent-encoded UTF-8 without control characters");
    request.params.insert_or_assign(pattern[i].substr(1, pattern[i].size() - 2), *std::move(value));
  }
  return ok();
}
}  // namespace

// Routes are kept ordered by their number of segments, so that a look-up touches only those of the right length.
void Router::add(Method method, std::string_view pattern, Handler handler, std::optional<StreamedBody> body) {
  Segments parts = split(pattern);
  WEIR_ASSERT(!parts.too_many);
  has_streamed_ = has_streamed_ || body;
  Route route{method, std::string(pattern), {}, std::move(handler), std::move(body)};
  for (size_t i = 0; i < parts.count; ++i) route.segments.emplace_back(parts.at[i]);
  auto place = std::ranges::upper_bound(routes_, route.segments, before, &Route::segments);
  routes_.insert(place, std::move(route));
}

namespace {
template <class Routes>
auto of_length(const Routes& routes, size_t length) {
  return std::ranges::equal_range(routes, length, {}, [](const auto& route) { return route.segments.size(); });
}
}  // namespace

Result<Router::Match> Router::find(Method method, std::string_view raw_path, Request& request) const {
  Segments path = split_request(raw_path);
  const Route* known = nullptr;
  if (!path.too_many) {
    for (const Route& route : of_length(routes_, path.count)) {
      if (known != nullptr && before(known->segments, route.segments)) break;
      bool right_method = answers(route.method, method);
      if ((known != nullptr && !right_method) || !matches(route.segments, path)) continue;
      known = &route;
      if (!right_method) continue;
      TRY(filled, fill_params(route.segments, path, request));
      return Match{&route.handler, &route.pattern, route.body ? &*route.body : nullptr};
    }
  }
  if (known != nullptr)
    return Error{Errc::not_found, "method_not_allowed",
                 fmt::format("this path does not answer {}; see the Allow header", to_string(method))};
  return Error{Errc::not_found, "not_found", "there is nothing at this path"};
}

std::string Router::allowed(std::string_view raw_path) const {
  Segments path = split_request(raw_path);
  std::array<bool, 8> seen{};
  const Route* known = nullptr;
  if (!path.too_many) {
    for (const Route& route : of_length(routes_, path.count)) {
      if (known != nullptr && before(known->segments, route.segments)) break;
      if (!matches(route.segments, path)) continue;
      known = &route;
      seen[static_cast<size_t>(route.method)] = true;
    }
  }
  if (known == nullptr) return {};
  if (seen[static_cast<size_t>(Method::get)]) seen[static_cast<size_t>(Method::head)] = true;
  seen[static_cast<size_t>(Method::options)] = true;
  std::string out;
  for (size_t i = 0; i < static_cast<size_t>(Method::other); ++i) {
    if (!seen[i]) continue;
    if (!out.empty()) out += ", ";
    out += to_string(static_cast<Method>(i));
  }
  return out;
}

std::vector<Router::Listed> Router::list() const {
  std::vector<Listed> out;
  for (const Route& route : routes_) out.push_back({route.method, route.pattern});
  return out;
}

}  // namespace weir::net
