#include "stream_bodies.hpp"

#include "lease_bodies.hpp"
#include "request.hpp"

#include "weir/stream/path.hpp"

namespace weir::control_plane {

struct ToldBody {
  lease::Owner by;
  std::int64_t version = 0;
  json::object memory, view;
};
template <class V>
void fields(V& v, ToldBody& t) {
  v.required("runner_id", t.by.runner);
  v.required("boot_id", t.by.boot);
  v.required("version", t.version, json::range<std::int64_t>(1, kVersionMax));
  v.required("memory", t.memory);
  v.required("view", t.view);
}

struct HomeBody {
  lease::Home home;
};
template <class V>
void fields(V& v, HomeBody& b) {
  v.optional("tenant_id", b.home.tenant);
  v.optional("site_id", b.home.site);
}

namespace {

std::string_view told_state(const StreamRecord& record) {
  const json::value* told = record.view.if_contains("state");
  return told != nullptr && told->is_string() ? std::string_view(told->get_string()) : "";
}

// What a stream does, by what is known: its holder's word, if it has a holder. A holder's last word before it releases
// the lease is that the stream is idle; one that fell silent said something else.
std::string_view state_of(const StreamRecord& record) {
  std::string_view told = told_state(record);
  if (!record.holder.empty()) return told.empty() ? "starting" : told;
  if (told.empty() || told == "idle" || told == "stopped") return stopped_by_operator(record) ? "stopped" : "idle";
  return "unattended";
}

json::value time_or_null(WallTime at) { return at == WallTime{} ? json::value(nullptr) : json::value(to_iso(at)); }

// Wishes that this version cannot read may hold a key anywhere: only those who may see it are shown them.
json::object shown_wishes(const StreamRecord& record, const Caller& caller) {
  if (sees_credentials(caller)) return record.wishes;
  auto wishes = stream::read_wishes(record.wishes);
  return wishes ? stream::write_wishes(*wishes, stream::Credentials::redacted) : json::object();
}

}  // namespace

Result<SubjectId> path_stream(const net::Request& request) {
  TRY(id, stream::read_stream_id(request.param(stream::StreamTag::name)));
  return SubjectId::trusted(id.str());
}

Result<WishesBody> read_wishes_body(json::object body) {
  TRY(place, json::read<HomeBody>(body));
  body.erase(TenantId::field_name);
  body.erase(SiteId::field_name);
  TRY(wishes, stream::read_wishes(body));
  return WishesBody{std::move(wishes), std::move(place.home)};
}

Result<StreamTold> read_told(const net::Request& request, SubjectId id) {
  if (request.body.size() > kToldBytesMax)
    return Error{Errc::too_large, "told_too_large",
                 fmt::format("memory and view of a stream have at most {} bytes together", kToldBytesMax)};
  TRY(body, body_as<ToldBody>(request));
  return StreamTold{std::move(id), std::move(body.by), {body.version}, std::move(body.memory), std::move(body.view)};
}

Result<StreamOrder> read_forward(const json::object& body, SubjectId id) {
  const json::value* on = body.if_contains("on");
  if (on == nullptr || !(on->is_bool() || on->is_null()))
    return bad_field("on", "must be true, false, or null for what the stream's settings say");
  StreamOrder order{std::move(id), "forward"};
  if (on->is_bool()) order.forward = on->get_bool();
  return order;
}

bool stopped_by_operator(const StreamRecord& record) {
  const json::value* said = record.view.if_contains("stopped_by_operator");
  return said != nullptr && said->is_bool() && said->get_bool();
}

json::object write_stream(const StreamRecord& record, const Caller& caller) {
  json::object out = record.view;
  out["stream_id"] = record.id.str();
  out["tenant_id"] = record.tenant.str();
  out["site_id"] = record.site.str();
  out["state"] = state_of(record);
  out["holder"] = record.holder.empty() ? json::value(nullptr) : json::value(record.holder.str());
  out["told_at"] = time_or_null(record.told_at);
  if (out["state"] == "unattended")  // what the silent holder said of its processes and its lease is true no more
    for (const char* part : {"worker", "forward", "lease", "source"}) out.erase(part);
  out["wishes"] = shown_wishes(record, caller);
  out.erase("memory");
  if (caller.role == net::Role::runner) out["memory"] = record.memory;
  return out;
}

}  // namespace weir::control_plane
