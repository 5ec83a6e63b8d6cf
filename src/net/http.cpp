#include "weir/net/http.hpp"

#include "weir/base/json.hpp"

#include <array>

namespace weir::net {

namespace {
constexpr std::array<std::string_view, 8> kMethodNames = {"GET", "HEAD",   "POST",    "PUT",
                                                          "PATCH", "DELETE", "OPTIONS", "OTHER"};

struct ErrcRow {
  int status;
  std::string_view word;  // the code of an error that names no reason of its own
};

ErrcRow row(Errc code) {
  switch (code) {
    case Errc::invalid: return {400, "bad_request"};
    case Errc::unauthorized: return {401, "unauthorized"};
    case Errc::forbidden: return {403, "forbidden"};
    case Errc::not_found: return {404, "not_found"};
    case Errc::conflict: return {409, "conflict"};
    case Errc::too_large: return {413, "too_large"};
    case Errc::unsupported: return {415, "unsupported"};
    case Errc::unprocessable: return {422, "unprocessable"};
    case Errc::too_many: return {429, "too_many"};
    case Errc::unavailable: return {503, "unavailable"};
    case Errc::internal: break;
  }
  return {500, "internal"};
}
}  // namespace

std::string_view to_string(Method method) { return kMethodNames[static_cast<size_t>(method)]; }

std::string_view Request::header(std::string_view lower_name) const {
  auto found = headers.find(lower_name);
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

const std::string& Request::param(std::string_view name) const {
  auto found = params.find(name);
  WEIR_ASSERT(found != params.end());
  return found->second;
}

std::optional<std::string> Request::query_value(std::string_view name) const {
  auto found = query.find(name);
  if (found == query.end()) return std::nullopt;
  return found->second;
}

Response Response::json(const boost::json::value& v, int status) {
  Response response;
  response.status = status;
  response.body = weir::json::to_text(v);
  return response;
}

Response Response::text(std::string body, int status, std::string type) {
  Response response;
  response.status = status;
  response.body = std::move(body);
  response.content_type = std::move(type);
  return response;
}

Response Response::failure(const Error& error) {
  ErrcRow fallback = row(error.code);
  std::string_view code = error.reason.empty() ? fallback.word : std::string_view(error.reason);
  boost::json::object inner{{"code", code}, {"message", error.message}, {"details", error.details}};
  Response response = json(boost::json::object{{"error", std::move(inner)}}, fallback.status);
  if (error.code == Errc::unavailable) response.headers.emplace_back("Retry-After", "1");
  return response;
}

int http_status(Errc code) { return row(code).status; }

}  // namespace weir::net
