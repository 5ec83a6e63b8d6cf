// What a server's refusal means: the words of a Weir server where it gives them, else what its status says.
#include "weir/base/json.hpp"
#include "weir/net/client.hpp"

namespace weir::net {

namespace {
Errc errc_of(int status) {
  switch (status) {
    case 401: return Errc::unauthorized;
    case 403: return Errc::forbidden;
    case 404:
    case 405:
    case 410: return Errc::not_found;
    case 409:
    case 412: return Errc::conflict;
    case 413: return Errc::too_large;
    case 415: return Errc::unsupported;
    case 422: return Errc::unprocessable;
    case 429: return Errc::too_many;
    case 408:
    case 502:
    case 503:
    case 504: return Errc::unavailable;
    default: return status >= 400 && status < 500 ? Errc::invalid : Errc::internal;
  }
}
}  // namespace

Error response_error(const ClientResponse& response) {
  Error error{errc_of(response.status), fmt::format("http_{}", response.status),
              fmt::format("the server answered with status {}", response.status)};
  auto parsed = weir::json::parse_text(response.body);
  if (!parsed || !parsed->is_object()) return error;
  const auto* inner = parsed->get_object().if_contains("error");
  if (inner == nullptr || !inner->is_object()) return error;
  const auto& fields = inner->get_object();
  auto text = [&](std::string_view name, std::string& to) {
    const auto* v = fields.if_contains(name);
    if (v != nullptr && v->is_string()) to = std::string(v->get_string());
  };
  text("code", error.reason);
  text("message", error.message);
  if (const auto* details = fields.if_contains("details"); details != nullptr && details->is_object())
    error.details = details->get_object();
  return error;
}

bool says_nothing(const ClientResponse& refusal) {
  int status = refusal.status;
  if (status == 401 || status == 403 || status == 404) return true;
  return response_error(refusal).reason == fmt::format("http_{}", status);
}

}  // namespace weir::net
