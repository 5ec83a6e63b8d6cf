// Reading a request: path, query and body, each wrong part answered with 400 and its name. Plain functions.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/json.hpp"
#include "weir/net/http.hpp"

namespace weir::control_plane {

Error bad_field(std::string_view path, std::string what);
// What is wrong with the name that a person gave something, "" where nothing is: the check of a body's field.
std::string name_problem(const std::string& name);

// The body as JSON; the server has already refused a body with another Content-Type.
Result<json::value> body_value(const net::Request& request);
Result<json::object> body_object(const net::Request& request);
template <class T>
Result<T> body_as(const net::Request& request, json::Unknown unknown = json::Unknown::ignore) {
  TRY(parsed, body_value(request));
  return json::read<T>(parsed, unknown);
}

template <class AnyId>
Result<AnyId> path_id(const net::Request& request) {
  return AnyId::parse(request.param(AnyId::field_name));
}
// An absent or empty parameter is the empty id.
template <class AnyId>
Result<AnyId> query_id(const net::Request& request) {
  auto text = request.query_value(AnyId::field_name);
  if (!text || text->empty()) return AnyId{};
  return AnyId::parse(*text);
}
Result<std::optional<bool>> query_flag(const net::Request& request, std::string_view name);
Result<std::int64_t> path_zone_id(const net::Request& request);

}  // namespace weir::control_plane
