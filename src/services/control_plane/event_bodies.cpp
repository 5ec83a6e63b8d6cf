#include "weir/control_plane/event_bodies.hpp"

#include "weir/control_plane/announcer.hpp"
#include "weir/control_plane/lease_bodies.hpp"
#include "weir/control_plane/request.hpp"

#include <charconv>

namespace weir::control_plane {

namespace {

using net::Role;

enum class About { camera, runner, all };

struct Family {
  std::string_view topic;
  std::string_view prefix;  // of the routing key
  About about;
};
constexpr Family kFamilies[] = {
    {kDetectionsTopic, "detections.", About::camera},     {kStatusTopic, "stream.status.", About::camera},
    {kStatusTopic, "stream.error.", About::camera},       {kStatusTopic, "runner.heartbeat.", About::runner},
    {kControlTopic, "lease.", About::all},                {kControlTopic, "camera.", About::all},
};

const Family* family_of(std::string_view topic, std::string_view key) {
  for (const Family& family : kFamilies)
    if (family.topic == topic && key.starts_with(family.prefix)) return &family;
  return nullptr;
}

std::string_view last_word(std::string_view key) { return key.substr(key.rfind('.') + 1); }

// lease.<what>.<tenant>.<site>.<camera>, and so for cameras.
bool key_is_of(std::string_view key, const TenantId& tenant) {
  std::string_view rest = key.substr(key.find('.', key.find('.') + 1) + 1);
  return std::ranges::count(key, '.') == 4 && rest.starts_with(event::routing_word(tenant.str()) + ".");
}

// One item of the batch, looked at field by field.
class Item {
 public:
  Item(const json::value& value, size_t index) : path_(fmt::format("items[{}]", index)) {
    if (value.is_object()) fields_ = &value.get_object();
  }

  Result<OutgoingEvent> read(const Caller& caller) const {
    if (fields_ == nullptr) return bad_field(path_, "must be an object");
    OutgoingEvent event;
    TRY(topic, text("topic", 64));
    TRY(key, text("routing_key", event::kKeyBytesMax));
    TRY(id, text("event_id", 64));
    if (id.starts_with(kOwnIdPrefix)) return wrong("event_id", "must not begin as the control plane's own ids do");
    const Family* family = family_of(topic, key);
    if (family == nullptr)
      return wrong("routing_key", "must be one of its topic: detections.… of detections.topic; stream.status.…, "
                                  "stream.error.…, runner.heartbeat.… of status.topic; lease.…, camera.… of "
                                  "control.topic");
    const json::value* payload = fields_->if_contains("payload");
    if (payload == nullptr || !payload->is_object()) return wrong("payload", "must be an object");
    const json::object& said = payload->get_object();
    TRY(agrees, same(said, "event_id", id, true));
    TRY(allowed, may_publish(*family, caller, key, said));
    if (family->about == About::camera) {
      TRY(stamp, read_stamp(said, key));
      event.stamp = std::move(stamp);
    }
    event.topic = topic;
    event.routing_key = key;
    event.event_id = id;
    event.payload = json::to_text(*payload);
    if (event.payload.size() > kPayloadBytesMax)
      return Error{Errc::too_large, "payload_too_large",
                   fmt::format("{}.payload has more than {} bytes; store it elsewhere and publish a reference", path_,
                               kPayloadBytesMax),
                   {{"field", path_ + ".payload"}}};
    return event;
  }

 private:
  Error wrong(std::string_view field, std::string what) const {
    return bad_field(fmt::format("{}.{}", path_, field), std::move(what));
  }
  Result<std::string_view> text(std::string_view name, size_t most) const {
    const json::value* v = fields_->if_contains(name);
    std::string_view out = v != nullptr && v->is_string() ? std::string_view(v->get_string()) : std::string_view();
    bool control = std::ranges::any_of(out, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
    if (out.empty() || out.size() > most || control)
      return wrong(name, fmt::format("must be a text of 1 to {} bytes without control characters", most));
    return out;
  }
  // What the payload says about itself must be what the item says about it.
  Status same(const json::object& said, std::string_view name, std::string_view expected, bool required) const {
    const json::value* v = said.if_contains(name);
    if (v == nullptr && !required) return ok();
    if (v != nullptr && v->is_string() && std::string_view(v->get_string()) == expected) return ok();
    return wrong(fmt::format("payload.{}", name), "must be the same as the item's");
  }
  Status may_publish(const Family& family, const Caller& caller, std::string_view key,
                     const json::object& said) const {
    bool speaks = caller.role == Role::runner || caller.role == Role::worker;
    auto refuse = [&](std::string_view who) {
      return Error{Errc::forbidden, "not_yours", fmt::format("{}: such events are published by {} only", path_, who)};
    };
    if (family.about == About::all) {
      if (caller.role != Role::admin) return refuse("an administrator");
      bool own = caller.tenant.empty() ||
                 (key_is_of(key, caller.tenant) && same(said, "tenant_id", caller.tenant.str(), false));
      return own ? ok() : refuse("an administrator of that tenant, or of all");
    }
    if (family.about == About::camera) {
      if (!speaks) return refuse("whoever holds the camera");
      return same(said, "runner_id", caller.sub, false);
    }
    if (caller.role != Role::runner || key != event::heartbeat_key(RunnerId::trusted(caller.sub)))
      return refuse("the runner itself");
    return same(said, "runner_id", caller.sub, true);
  }
  Result<EventStamp> read_stamp(const json::object& said, std::string_view key) const {
    TRY(camera, text("camera_uuid", 255));
    TRY(id, CameraId::parse(camera));
    const json::value* version = fields_->if_contains("lease_version");
    if (version == nullptr || !version->is_int64() || version->get_int64() < 1 || version->get_int64() > kVersionMax)
      return wrong("lease_version", "must be the version of the camera's lease");
    TRY(same_camera, same(said, "camera_uuid", camera, true));
    const json::value* stamped = said.if_contains("lease_version");
    if (stamped == nullptr || !stamped->is_int64() || stamped->get_int64() != version->get_int64())
      return wrong("payload.lease_version", "must be the same as the item's");
    TRY(own_place, payload_place(said, key));
    return EventStamp{std::move(id), {version->get_int64()}};
  }
  // <family>.<tenant>.<site>.<camera>: what the payload says of tenant and site stands in the key.
  Status payload_place(const json::object& said, std::string_view key) const {
    for (std::string_view name : {"site_id", "tenant_id"}) {
      key = key.substr(0, key.rfind('.'));
      const json::value* v = said.if_contains(name);
      if (v == nullptr) continue;
      if (!v->is_string() || event::routing_word(std::string_view(v->get_string())) != last_word(key))
        return wrong(fmt::format("payload.{}", name), "must be the camera's, as in the routing key");
    }
    return ok();
  }

  const std::string path_;
  const json::object* fields_ = nullptr;
};

}  // namespace

Result<std::vector<OutgoingEvent>> read_events(const json::value& body, const Caller& caller) {
  const json::value* items = body.is_object() ? body.get_object().if_contains("items") : nullptr;
  if (!body.is_object()) return bad_field("body", "must be an object");
  if (items == nullptr || !items->is_array() || items->get_array().empty() || items->get_array().size() > kAppendMax)
    return bad_field("items", fmt::format("must be a list of 1 to {} events", kAppendMax));
  std::vector<OutgoingEvent> events;
  events.reserve(items->get_array().size());
  for (const json::value& each : items->get_array()) {
    TRY(event, Item(each, events.size()).read(caller));
    events.push_back(std::move(event));
  }
  return events;
}

Status fits_place(const OutgoingEvent& event, const event::Place& place, size_t index) {
  for (const std::string& key : {event::detections_key(place), event::status_key(place), event::error_key(place)})
    if (key == event.routing_key) return ok();
  return bad_field(fmt::format("items[{}].routing_key", index), "must be the camera's own: FAMILY.TENANT.SITE.CAMERA");
}

std::string write_confirmations(std::span<const OutgoingEvent> events, std::span<const Confirmation> answers) {
  constexpr std::string_view kNames[] = {"accepted", "duplicate", "stale"};
  std::string out = R"({"items":[)";
  for (size_t i = 0; i < answers.size(); ++i)
    fmt::format_to(std::back_inserter(out), R"({}{{"event_id":{},"result":"{}"}})", i == 0 ? "" : ",",
                   json::to_text(json::value(events[i].event_id)), kNames[static_cast<size_t>(answers[i])]);
  return out + "]}";
}

std::string cursor_text(EventPlace place) { return fmt::format("{}-{}", place.epoch, place.sequence); }

std::optional<EventPlace> parse_cursor(std::string_view text) {
  EventPlace place;
  const char* end = text.data() + text.size();
  auto [dash, bad] = std::from_chars(text.data(), end, place.epoch);
  if (bad != std::errc() || dash == end || *dash != '-') return std::nullopt;
  auto [stop, worse] = std::from_chars(dash + 1, end, place.sequence);
  if (worse != std::errc() || stop != end || place.epoch < 0 || place.sequence < 0) return std::nullopt;
  return place;
}

std::string write_event_data(const StoredEvent& event) {
  return fmt::format(R"({{"routing_key":{},"topic":{},"payload":{}}})", json::to_text(json::value(event.routing_key)),
                     json::to_text(json::value(event.topic)), event.payload);
}

std::string write_event_item(const StoredEvent& event, std::int64_t epoch) {
  return fmt::format(R"({{"cursor":"{}","stored_at":"{}",{})", cursor_text({epoch, event.sequence}),
                     to_iso(event.stored_at), write_event_data(event).substr(1));
}

}  // namespace weir::control_plane
