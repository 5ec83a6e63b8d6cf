// Published streams, as operators and orchestrators see them. The cameras' streams are elsewhere (stream_board.hpp).
#include "page.hpp"
#include "plane.hpp"
#include "request.hpp"
#include "stream_bodies.hpp"

#include "weir/base/log.hpp"

namespace weir::control_plane {

using net::Method;

namespace {

constexpr std::string_view kAnyHome = "default";  // the tenant and the site of a stream of which nobody said more

void note(std::string_view what, const StreamRecord& record, const Caller& caller, const net::Request& request,
          std::string_view order = "") {
  log::info(fmt::format("publication.{}", what))
      .with("stream_id", record.id)
      .with("tenant_id", record.tenant)
      .with("runner_id", record.holder)
      .with("order", order)
      .with("by", caller.sub)
      .with("request_id", request.request_id);
}

Reply list_streams(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(page, read_page(request));
  TenantId tenant = caller.tenant;
  SubjectId after = SubjectId::trusted(page.after);
  CO_TRY(found, co_await plane.published.list_streams(std::move(tenant), std::move(after), page.ask()));
  co_return net::Response::json(listed(
      found, page, [](const StreamRecord& record) { return record.id.str(); },
      [&](const StreamRecord& record) { return write_stream(record, caller); }));
}

Async<StreamRecord> shown(Plane& plane, SubjectId id, TenantId tenant) {
  return plane.published.show_stream(std::move(id), std::move(tenant));
}

Reply show_stream(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, path_stream(request));
  CO_TRY(record, co_await shown(plane, id, caller.tenant));
  co_return net::Response::json(write_stream(record, caller));
}

// ---- wishes ----

// A stream stays where it was made, by wishes or by its first lease. A new one stands where the body says, else under
// the caller's tenant.
Async<lease::Home> home_of(Plane& plane, SubjectId id, lease::Home asked, TenantId callers) {
  if (asked.tenant.empty()) asked.tenant = callers;
  if (asked.tenant.empty()) {
    auto known = co_await plane.leases.show(std::move(id), std::move(callers));
    if (!known && known.error().code != Errc::not_found) co_return std::move(known).error();
    bool made = known && known->row.kind == lease::Kind::stream;
    asked.tenant = made ? known->row.tenant : TenantId::trusted(std::string(kAnyHome));
  }
  if (asked.site.empty()) asked.site = SiteId::trusted(std::string(kAnyHome));
  co_return std::move(asked);
}

Error id_taken() {
  return {Errc::conflict, "id_taken", "this id is not free for a stream of yours", {{"field", "stream_id"}}};
}

Reply put_stream(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, path_stream(request));
  CO_TRY(body, body_object(request));
  CO_TRY(asked, read_wishes_body(std::move(body)));
  CO_TRY(allowed, tenant_for(caller, asked.home.tenant));
  CO_TRY(home, co_await home_of(plane, id, asked.home, caller.tenant));
  StreamRecord wanted{.id = id, .tenant = home.tenant, .site = home.site};
  wanted.wishes = stream::write_wishes(asked.wishes, stream::Credentials::shown);
  auto put = co_await plane.published.put_stream(std::move(wanted));
  if (!put && put.error().code == Errc::conflict) co_return id_taken();
  if (!put) co_return std::move(put).error();
  CO_TRY(record, co_await shown(plane, id, home.tenant));
  plane.announcer.ordered(record, {id, "wishes"});
  note("wished", record, caller, request);
  co_return net::Response::json(write_stream(record, caller));
}

Reply remove_stream(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, path_stream(request));
  CO_TRY(record, co_await shown(plane, id, caller.tenant));
  SubjectId doomed = id;
  TenantId tenant = caller.tenant;
  CO_TRY(gone, co_await plane.published.remove_stream(std::move(doomed), std::move(tenant)));
  plane.announcer.ordered(record, {id, "wishes"});
  note("removed", record, caller, request);
  co_return net::Response::json(json::object{{"stream_id", id.str()}, {"deleted", true}});
}

// ---- orders ----

// An operator's stop gives the lease up, so nobody holds what a restart is to start again: every orchestrator is told,
// and the one that has the publisher starts the stream.
bool reaches_somebody(const StreamRecord& record, const StreamOrder& order) {
  return !record.holder.empty() || (order.what == "restart" && stopped_by_operator(record));
}

Error nobody_to_order(const StreamOrder& order) {
  std::string_view instead = order.what == "forward" ? "; what shall hold from its next start on is put as a wish" : "";
  return {Errc::unprocessable, "stream_not_held",
          fmt::format("no orchestrator holds this stream now, so there is nothing to {}{}", order.what, instead)};
}

Reply give(Plane& plane, const net::Request& request, const Caller& caller, StreamOrder order) {
  CO_TRY(record, co_await shown(plane, order.id, caller.tenant));
  if (!reaches_somebody(record, order)) co_return nobody_to_order(order);
  plane.announcer.ordered(record, order);
  note("ordered", record, caller, request, order.what);
  json::object out{{"stream_id", record.id.str()}, {"order", order.what}, {"holder", nullptr}};
  if (!record.holder.empty()) out["holder"] = record.holder.str();
  if (order.what == "forward") out["on"] = json::write_value(order.forward);
  co_return net::Response::json(out);
}

// An order without particulars: its body may be left out.
Reply order_plainly(Plane& plane, net::Request& request, const Caller& caller, std::string what) {
  CO_TRY(id, path_stream(request));
  if (!request.body.empty()) {
    CO_TRY(body, body_object(request));
  }
  StreamOrder order{id, std::move(what)};
  co_return co_await give(plane, request, caller, std::move(order));
}
Reply stop_stream(Plane& plane, net::Request& request, const Caller& caller) {
  return order_plainly(plane, request, caller, "stop");
}
Reply restart_stream(Plane& plane, net::Request& request, const Caller& caller) {
  return order_plainly(plane, request, caller, "restart");
}

Reply forward_stream(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, path_stream(request));
  CO_TRY(body, body_object(request));
  CO_TRY(order, read_forward(body, id));
  co_return co_await give(plane, request, caller, std::move(order));
}

// ---- what the holder tells ----

Reply hear_of_stream(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, path_stream(request));
  CO_TRY(told, read_told(request, id));
  CO_TRY(own, speaks_for(caller, told.by.runner));
  if (!caller.tenant.empty()) {
    SubjectId looked = id;
    TenantId tenant = caller.tenant;
    CO_TRY(theirs, co_await plane.leases.show(std::move(looked), std::move(tenant)));
  }
  CO_TRY(kept, co_await plane.published.tell_stream(std::move(told)));
  co_return net::Response::json(json::object{{"stream_id", id.str()}, {"told", true}});
}

}  // namespace

void add_stream_routes(net::Router& router, Plane& plane) {
  const std::string all = "/v1/streams", one = all + "/{stream_id}";
  add_guarded(router, plane, Method::get, all, kReadersAndRunners, list_streams);
  add_guarded(router, plane, Method::get, one, kReadersAndRunners, show_stream);
  add_guarded(router, plane, Method::put, one, kRunners, put_stream);
  add_guarded(router, plane, Method::del, one, kRunners, remove_stream);
  add_guarded(router, plane, Method::post, one + "/stop", kRunners, stop_stream);
  add_guarded(router, plane, Method::post, one + "/restart", kRunners, restart_stream);
  add_guarded(router, plane, Method::post, one + "/forward", kRunners, forward_stream);
  add_guarded(router, plane, Method::post, one + "/told", kRunners, hear_of_stream);
}

}  // namespace weir::control_plane
