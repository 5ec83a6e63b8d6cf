#include "weir/cluster/announcement.hpp"

#include "wire.hpp"

namespace weir::cluster {

namespace {

enum class Type {
  detection, assignments_updated, regenerate_subscriptions, cluster_event, patch_session, set_session, answer_patch,
  resubscribe_camera, command_response, heartbeat
};
constexpr auto enum_names(Type) {
  return std::to_array<json::EnumName<Type>>({{Type::detection, "detection"},
                                              {Type::assignments_updated, "assignments_updated"},
                                              {Type::regenerate_subscriptions, "regenerate_subscriptions"},
                                              {Type::cluster_event, "cluster_event"},
                                              {Type::patch_session, "patch_session"},
                                              {Type::set_session, "set_session"},
                                              {Type::answer_patch, "answer_patch"},
                                              {Type::resubscribe_camera, "resubscribe_camera"},
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

template <class V>
void fields(V& v, ClusterHappened& h) {
  v.required("event", h.event);
  v.required("payload", h.payload);
}

struct Session {
  std::int64_t session = 0;
};
template <class V>
void fields(V& v, Session& s) {
  v.required("sessionId", s.session);
}

struct FromSlave {
  std::string slave;
  json::object data = {};
};
template <class V>
void fields(V& v, FromSlave& f) {
  v.required("slaveId", f.slave);
  v.required("data", f.data);
}

// ---- what stands in `data`, where a slave or the master's answer to it is concerned ----
template <class V>
void data_fields(V& v, SessionSet& s) {
  v.required("requestId", s.request);
  v.required("displayIdentifier", s.display, json::length(1, 255));
  wire::nullable(v, "sessionId", s.session);
}
template <class V>
void data_fields(V& v, PatchAnswered& p) {
  v.required("requestId", p.request);
  v.required("sessionId", p.result.session);
  v.required("success", p.result.success);
  v.optional("message", p.result.message);
}
template <class V>
void data_fields(V& v, CameraResubscribed& r) {
  v.required("requestId", r.request);
  v.required("cameraIdentifier", r.camera, json::length(1, 255));
}
template <class V>
void data_fields(V& v, CommandResponse& r) {
  v.required("requestId", r.request);
  v.required("success", r.success);
  if (V::reading || !r.success) v.optional("reason", r.reason);
  if (V::reading || !r.success) v.optional("message", r.message);
}
template <class V>
void data_fields(V& v, Heartbeat& h) {
  v.required("listeners", h.listeners);
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

Result<PatchRequested> patch_of(const json::object& all) {
  TRY(session, part<Session>(all));
  const json::value* data = all.if_contains("data");
  return PatchRequested{session.session, data == nullptr ? json::value(nullptr) : *data};
}

template <class T>
Result<T> from_slave(const json::object& all) {
  TRY(from, part<FromSlave>(all));
  json::Context ctx;
  T out{};
  json::Reader reader(from.data, "data", ctx);
  data_fields(reader, out);
  if (!ctx.problems.empty()) return json::problems_error(ctx.problems);
  out.slave = std::move(from.slave);
  return out;
}

template <class T>
void put_from_slave(json::object& into, const T& said) {
  json::Writer writer;
  data_fields(writer, const_cast<T&>(said));  // a Writer only reads
  put(into, FromSlave{said.slave, writer.take()});
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
           [&](const ClusterHappened& h) {
             put(rest, h);
             return Type::cluster_event;
           },
           [&](const PatchRequested& p) {
             put(rest, Session{p.session});
             rest["data"] = p.data;
             return Type::patch_session;
           },
           [&](const SessionSet& s) {
             put_from_slave(rest, s);
             return Type::set_session;
           },
           [&](const PatchAnswered& p) {
             put_from_slave(rest, p);
             return Type::answer_patch;
           },
           [&](const CameraResubscribed& r) {
             put_from_slave(rest, r);
             return Type::resubscribe_camera;
           },
           [&](const CommandResponse& r) {
             put_from_slave(rest, r);
             return Type::command_response;
           },
           [&](const Heartbeat& h) {
             put_from_slave(rest, h);
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
    case Type::cluster_event: return take(part<ClusterHappened>(all));
    case Type::patch_session: return take(patch_of(all));
    case Type::set_session: return take(from_slave<SessionSet>(all));
    case Type::answer_patch: return take(from_slave<PatchAnswered>(all));
    case Type::resubscribe_camera: return take(from_slave<CameraResubscribed>(all));
    case Type::command_response: return take(from_slave<CommandResponse>(all));
    case Type::heartbeat: break;
  }
  return take(from_slave<Heartbeat>(all));
}

}  // namespace weir::cluster
