#include "status_bodies.hpp"

#include "lease_bodies.hpp"
#include "request.hpp"

#include "weir/event/event.hpp"
#include "weir/event/routing.hpp"

#include <algorithm>

namespace weir::control_plane {

namespace {
constexpr std::string_view kStatusType = "stream.status", kErrorType = "stream.error";

std::string type_problem(const std::string& type) {
  return type == kStatusType || type == kErrorType ? "" : "must be stream.status or stream.error";
}
std::string state_problem(const std::string& state) {
  bool known = state == "CONNECTING" || state == "STREAMING" || state == "DISCONNECTED";
  return known ? "" : "must be CONNECTING, STREAMING or DISCONNECTED";
}
std::string code_problem(const std::string& word) {
  bool sane = !word.empty() && word.size() <= 64 && name_problem(word).empty();
  return sane ? "" : "must have 1 to 64 bytes without control characters";
}
}  // namespace

struct StatusBody {
  CameraId camera;
  BootId boot;
  std::string type{kStatusType};
  std::string state, code;
  std::optional<std::int64_t> version;
};
template <class V>
void fields(V& v, StatusBody& b) {
  v.required("camera_uuid", b.camera);
  v.optional("boot_id", b.boot);
  v.optional("type", b.type, type_problem);
  v.optional("state", b.state, state_problem);
  v.optional("code", b.code, code_problem);
  v.optional("lease_version", b.version, json::range<std::int64_t>(1, kVersionMax));
  if (b.type == kErrorType) v.rule("code", b.code.empty() ? "is required" : "");
  else v.rule("state", b.state.empty() ? "is required" : "");
}

Result<std::vector<SaidStatus>> read_statuses(const json::value& body) {
  const json::value* items = body.is_object() ? body.get_object().if_contains("items") : nullptr;
  if (!body.is_object()) return bad_field("body", "must be an object");
  if (items == nullptr || !items->is_array() || items->get_array().empty() || items->get_array().size() > kStatusesMax)
    return bad_field("items", fmt::format("must be a list of 1 to {} statuses", kStatusesMax));
  json::Context ctx;
  std::vector<StatusBody> bodies;
  json::read_value(*items, bodies, "items", ctx);
  if (!ctx.problems.empty()) return json::problems_error(ctx.problems);
  std::vector<SaidStatus> out;
  for (size_t i = 0; i < bodies.size(); ++i) {
    StatusBody& given = bodies[i];
    SaidStatus status{std::move(given.camera), std::move(given.boot)};
    if (given.version) status.version = lease::Version{*given.version};
    status.error = given.type == kErrorType;
    status.said = items->get_array()[i].get_object();
    status.said["type"] = given.type;
    out.push_back(std::move(status));
  }
  return out;
}

json::object write_status_event(SaidStatus status, const lease::LeaseRow& row, lease::Version version,
                                std::string event_id) {
  event::Place place{row.tenant, row.site, row.subject};
  status.said["event_id"] = event_id;
  status.said["lease_version"] = version.n;
  return {{"topic", event::kStatusTopic},
          {"routing_key", status.error ? event::error_key(place) : event::status_key(place)},
          {"event_id", event_id},
          {"camera_uuid", status.camera.str()},
          {"lease_version", version.n},
          {"payload", std::move(status.said)}};
}

std::string write_status_answers(std::span<const SaidStatus> statuses, std::span<const Confirmation> answers) {
  constexpr std::string_view kNames[] = {"accepted", "duplicate", "stale"};
  json::array items;
  for (size_t i = 0; i < answers.size(); ++i)
    items.push_back(json::object{{"camera_uuid", statuses[i].camera.str()},
                                 {"result", kNames[static_cast<size_t>(answers[i])]}});
  auto accepted = std::ranges::count(answers, Confirmation::accepted);
  return json::to_text(json::object{{"accepted", accepted}, {"items", std::move(items)}});
}

}  // namespace weir::control_plane
