#include "weir/cluster/announcement.hpp"

#include "wire.hpp"

namespace weir::cluster {

namespace {

enum class Type { detection, assignments_updated, regenerate_subscriptions, command_response, heartbeat };
constexpr auto enum_names(Type) {
  return std::to_array<json::EnumName<Type>>({{Type::detection, "detection"},
                                              {Type::assignments_updated, "assignments_updated"},
                                              {Type::regenerate_subscriptions, "regenerate_subscriptions"},
                                              {Type::command_response, "command_response"},
                                              {Type::heartbeat, "heartbeat"}});
}

// What stands in every announcement.
struct Head {
  Type type = Type::detection;
  std::int64_t epoch = 0;
  WallTime timestamp{};
  std::string stream_id;
};
template <class V>
void fields(V& v, Head& h) {
  v.required("type", h.type);
  v.required("epoch", h.epoch, json::range<std::int64_t>(0, std::int64_t{1} << 53));
  wire::moment(v, "timestamp", h.timestamp);
  if (V::reading || !h.stream_id.empty()) v.optional("streamId", h.stream_id);
}

template <class V>
void fields(V& v, RegenerateSubscriptions& r) {
  v.required("reason", r.reason);
  v.required("triggeredBy", r.triggered_by);
}

struct Routing {
  std::string worker;
};
template <class V>
void fields(V& v, Routing& r) {
  v.required("workerUrl", r.worker);
}

struct Assigned {
  json::object assignments;
};
template <class V>
void fields(V& v, Assigned& a) {
  v.required("assignments", a.assignments);
}

struct FromSlave {
  std::string slave;
};
template <class V>
void fields(V& v, FromSlave& f) {
  v.required("slaveId", f.slave);
}

template <class T>
Result<T> part(const json::object& all) {
  json::Context ctx;
  T out{};
  json::Reader reader(all, "", ctx);
  fields(reader, out);
  if (!ctx.problems.empty()) return json::problems_error(ctx.problems);
  return out;
}

template <class T>
void put(json::object& into, T part) {
  json::Writer writer;
  fields(writer, part);
  for (auto& member : writer.take()) into[member.key()] = member.value();
}

json::value data_of(const json::object& all) {
  const json::value* data = all.if_contains("data");
  return data == nullptr ? json::value(nullptr) : *data;
}

Result<DetectionRouted> detection_of(const json::object& all) {
  TRY(routing, part<Routing>(all));
  const json::value* data = all.if_contains("data");
  if (data == nullptr) return json::problems_error({{"data", "is required"}});
  TRY(detection, read_detection(*data, "data"));
  return DetectionRouted{std::move(routing.worker), std::move(detection)};
}

Result<AssignmentsUpdated> assignments_of(const json::object& all) {
  TRY(assigned, part<Assigned>(all));
  AssignmentsUpdated out;
  for (const auto& member : assigned.assignments) {
    if (!member.value().is_string()) return json::problems_error({{"assignments", "must hold strings"}});
    out.slave_of.emplace(member.key(), member.value().get_string());
  }
  return out;
}

template <class T>
Result<T> from_slave(const json::object& all) {
  TRY(from, part<FromSlave>(all));
  return T{std::move(from.slave), data_of(all)};
}

template <class... F>
struct Each : F... {
  using F::operator()...;
};

}  // namespace

std::string write_announcement(const Announcement& a) {
  json::object rest;
  Type type = std::visit(
      Each{[&](const DetectionRouted& d) {
             put(rest, Routing{redact_url(d.worker)});
             rest["data"] = write_detection(d.detection);
             return Type::detection;
           },
           [&](const AssignmentsUpdated& u) {
             Assigned assigned;
             for (const auto& [worker, slave] : u.slave_of) assigned.assignments[redact_url(worker)] = slave;
             put(rest, std::move(assigned));
             return Type::assignments_updated;
           },
           [&](const RegenerateSubscriptions& r) {
             put(rest, r);
             return Type::regenerate_subscriptions;
           },
           [&](const CommandResponse& r) {
             put(rest, FromSlave{r.slave});
             rest["data"] = r.data;
             return Type::command_response;
           },
           [&](const Heartbeat& h) {
             put(rest, FromSlave{h.slave});
             rest["data"] = h.data;
             return Type::heartbeat;
           }},
      a.what);
  json::object all;
  put(all, Head{type, a.epoch, a.timestamp, a.stream_id});
  for (auto& member : rest) all[member.key()] = std::move(member.value());
  return json::to_text(all);
}

Result<Announcement> read_announcement(std::string_view text) {
  TRY(parsed, json::parse_text(text));
  if (!parsed.is_object()) return json::problems_error({{"body", "must be an object"}});
  const json::object& all = parsed.get_object();
  TRY(head, part<Head>(all));
  Announcement out{.epoch = head.epoch, .timestamp = head.timestamp, .what = {}, .stream_id = head.stream_id};
  auto take = [&out](auto read) -> Result<Announcement> {
    if (!read) return std::move(read).error();
    out.what = *std::move(read);
    return std::move(out);
  };
  switch (head.type) {
    case Type::detection: return take(detection_of(all));
    case Type::assignments_updated: return take(assignments_of(all));
    case Type::regenerate_subscriptions: return take(part<RegenerateSubscriptions>(all));
    case Type::command_response: return take(from_slave<CommandResponse>(all));
    case Type::heartbeat: break;
  }
  return take(from_slave<Heartbeat>(all));
}

}  // namespace weir::cluster
