#include "event_bodies.hpp"

#include "announcer.hpp"
#include "lease_bodies.hpp"
#include "request.hpp"

#include "weir/stream/events.hpp"

#include <charconv>

namespace weir::control_plane {

namespace {

using net::Role;

enum class About { camera, stream, runner, all };

struct Family {
  std::string_view topic;
  std::string_view prefix;  // of the routing key
  About about;
};
constexpr Family kFamilies[] = {
    {event::kDetectionsTopic, "detections.", About::camera},     {event::kStatusTopic, "stream.status.", About::camera},
    {event::kStatusTopic, "stream.error.", About::camera},       {event::kStatusTopic, "runner.heartbeat.", About::runner},
    {event::kStatusTopic, "publication.", About::stream},        {event::kControlTopic, "lease.", About::all},
    {event::kControlTopic, "camera.", About::all},
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

bool is_publication(std::string_view key) { return key.starts_with("publication."); }
bool is_publication_of(std::string_view key, const event::Place& place) {
  auto is = [&](std::string_view state) { return key == event::publication_key(state, place); };
  return std::ranges::any_of(stream::kPhaseNames, [&](const auto& phase) { return is(phase.name); }) || is("degraded");
}

// One item of the batch, looked at field by field.
class Item {
 public:
  Item(const json::value& value, size_t index) : path_(fmt::format("items[{}]", index)) {
    if (value.is_object()) fields_ = &value.get_object();
  }

  Result<event::Event> read(const Caller& caller) const {
    if (fields_ == nullptr) return bad_field(path_, "must be an object");
    event::Event event;
    TRY(topic, text("topic", 64));
    TRY(key, text("routing_key", event::kKeyBytesMax));
    TRY(id, text("event_id", 64));
    if (id.starts_with(kOwnIdPrefix)) return wrong("event_id", "must not begin as the control plane's own ids do");
    const Family* family = family_of(topic, key);
    if (family == nullptr)
      return wrong("routing_key", "must be one of its topic: detections.… of detections.topic; stream.status.…, "
                                  "stream.error.…, publication.…, runner.heartbeat.… of status.topic; lease.…, "
                                  "camera.… of control.topic");
    const json::value* payload = fields_->if_contains("payload");
    if (payload == nullptr || !payload->is_object()) return wrong("payload", "must be an object");
    const json::object& said = payload->get_object();
    TRY(agrees, same(said, "event_id", id, true));
    TRY(allowed, may_publish(*family, caller, key, said));
    if (is_leased(*family)) {
      TRY(stamp, read_stamp(said, key, subject_field(*family)));
      event.stamp = std::move(stamp);
    }
    event.topic = topic;
    event.routing_key = key;
    event.event_id = id;
    // Written anew from what was checked here, so that nobody finds in it what nobody checked: a member that stands
    // twice, or a line break. Behind this door the text stays as it is.
    event.payload = json::to_text(*payload);
    if (event.payload.size() > kPayloadBytesMax)
      return Error{Errc::too_large, "payload_too_large",
                   fmt::format("{}.payload has more than {} bytes; store it elsewhere and publish a reference", path_,
                               kPayloadBytesMax),
                   {{"field", path_ + ".payload"}}};
    return event;
  }

 private:
  // Whether whoever holds a lease speaks here.
  static bool is_leased(const Family& family) { return family.about == About::camera || family.about == About::stream; }
  // A published stream's holder tells of it, and also of what it sees in its pictures, as a camera's does.
  std::string_view subject_field(const Family& family) const {
    bool of_stream = family.about == About::stream || fields_->contains("stream_id");
    return lease::id_field(of_stream ? lease::Kind::stream : lease::Kind::camera);
  }
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
    if (is_leased(family)) {
      bool of_stream = family.about == About::stream;
      if (!speaks) return refuse(of_stream ? "whoever holds the stream" : "whoever holds the camera");
      return same(said, "runner_id", caller.sub, false);
    }
    if (caller.role != Role::runner || key != event::heartbeat_key(RunnerId::trusted(caller.sub)))
      return refuse("the runner itself");
    return same(said, "runner_id", caller.sub, true);
  }
  Result<event::Stamp> read_stamp(const json::object& said, std::string_view key, std::string_view id_field) const {
    TRY(subject, text(id_field, 255));
    TRY(id, SubjectId::parse(subject));
    const json::value* version = fields_->if_contains("lease_version");
    if (version == nullptr || !version->is_int64() || version->get_int64() < 1 || version->get_int64() > kVersionMax)
      return wrong("lease_version", "must be the version of the lease");
    TRY(same_subject, same(said, id_field, subject, true));
    const json::value* stamped = said.if_contains("lease_version");
    if (stamped == nullptr || !stamped->is_int64() || stamped->get_int64() != version->get_int64())
      return wrong("payload.lease_version", "must be the same as the item's");
    TRY(own_place, payload_place(said, key));
    return event::Stamp{std::move(id), {version->get_int64()}};
  }
  // <family>.<tenant>.<site>.<camera or stream>: what the payload says of tenant and site stands in the key.
  Status payload_place(const json::object& said, std::string_view key) const {
    for (std::string_view name : {"site_id", "tenant_id"}) {
      key = key.substr(0, key.rfind('.'));
      const json::value* v = said.if_contains(name);
      if (v == nullptr) continue;
      if (!v->is_string() || event::routing_word(std::string_view(v->get_string())) != last_word(key))
        return wrong(fmt::format("payload.{}", name), "must be as in the routing key");
    }
    return ok();
  }

  const std::string path_;
  const json::object* fields_ = nullptr;
};

}  // namespace

Result<std::vector<event::Event>> read_events(const json::value& body, const Caller& caller) {
  const json::value* items = body.is_object() ? body.get_object().if_contains("items") : nullptr;
  if (!body.is_object()) return bad_field("body", "must be an object");
  if (items == nullptr || !items->is_array() || items->get_array().empty() || items->get_array().size() > kAppendMax)
    return bad_field("items", fmt::format("must be a list of 1 to {} events", kAppendMax));
  std::vector<event::Event> events;
  events.reserve(items->get_array().size());
  for (const json::value& each : items->get_array()) {
    TRY(event, Item(each, events.size()).read(caller));
    events.push_back(std::move(event));
  }
  return events;
}

Status fits_place(const event::Event& event, const event::Place& place, size_t index) {
  if (is_publication(event.routing_key)) {
    if (is_publication_of(event.routing_key, place)) return ok();
    return bad_field(fmt::format("items[{}].routing_key", index),
                     "must be the stream's own: publication.STATE.TENANT.SITE.STREAM, and of a state that there is");
  }
  for (const std::string& key : {event::detections_key(place), event::status_key(place), event::error_key(place)})
    if (key == event.routing_key) return ok();
  return bad_field(fmt::format("items[{}].routing_key", index), "must be the camera's own: FAMILY.TENANT.SITE.CAMERA");
}

std::string write_confirmations(std::span<const std::string> event_ids, std::span<const Confirmation> answers) {
  constexpr std::string_view kNames[] = {"accepted", "duplicate", "stale"};
  std::string out = R"({"items":[)";
  for (size_t i = 0; i < answers.size(); ++i)
    fmt::format_to(std::back_inserter(out), R"({}{{"event_id":{},"result":"{}"}})", i == 0 ? "" : ",",
                   json::to_text(json::value(event_ids[i])), kNames[static_cast<size_t>(answers[i])]);
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
