// The routes that displays, playlists and models share: each has an id and a tenant, is put as a whole, and is
// announced when it changes.
//
// `Of` names the record and how it is read, written and stored; see OfDisplays for what it has. Loop thread only.
#pragma once

#include "page.hpp"
#include "plane.hpp"
#include "request.hpp"

#include "weir/base/log.hpp"

namespace weir::control_plane {

template <class Of>
void note_record(Plane& plane, std::string_view what, const typename Of::Record& record, const Caller& caller,
                 const net::Request& request) {
  std::string change = fmt::format("{}.{}", Of::kWhat, what), id = Of::name(record);
  plane.announcer.desire(change, record.tenant, id, Of::announced(record));
  log::info(change)
      .with(Of::kIdField, id)
      .with("tenant_id", record.tenant)
      .with("by", caller.sub)
      .with("request_id", request.request_id);
}

template <class Of>
Reply list_records(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(page, read_page(request));
  CO_TRY(wanted, query_id<TenantId>(request));
  std::vector<typename Of::Record> found;
  // Another tenant's list is as empty as that of a tenant that does not exist.
  if (auto tenant = tenant_for(caller, wanted)) {
    TenantId in = *tenant;
    CO_TRY(records, co_await Of::list(plane, std::move(in), page));
    found = std::move(records);
  }
  co_return net::Response::json(listed(found, page, Of::name, Of::write));
}

template <class Of>
Reply show_record(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, Of::path_id(request));
  TenantId tenant = caller.tenant;
  CO_TRY(record, co_await Of::show(plane, std::move(id), std::move(tenant)));
  co_return net::Response::json(Of::write(record));
}

template <class Of>
Reply add_record(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(body, body_object(request));
  CO_TRY(wanted, Of::read(std::move(body)));
  CO_TRY(tenant, tenant_for(caller, wanted.tenant));
  if (tenant.empty()) co_return bad_field("tenant_id", "is required");
  wanted.tenant = tenant;
  CO_TRY(record, co_await Of::put(plane, std::move(wanted), Put::add));
  note_record<Of>(plane, "created", record, caller, request);
  co_return net::Response::json(Of::write(record), 201);
}

template <class Of>
Reply replace_record(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(body, body_object(request));
  CO_TRY(same, Of::fill_id(body, request));
  CO_TRY(wanted, Of::read(std::move(body)));
  CO_TRY(tenant, tenant_for(caller, wanted.tenant));
  wanted.tenant = tenant;
  CO_TRY(record, co_await Of::put(plane, std::move(wanted), Put::replace));
  note_record<Of>(plane, "updated", record, caller, request);
  co_return net::Response::json(Of::write(record));
}

template <class Of>
Reply remove_record(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, Of::path_id(request));
  auto doomed = id;
  TenantId tenant = caller.tenant, again = caller.tenant;
  // A record never changes its tenant, so looking first is safe.
  CO_TRY(record, co_await Of::show(plane, std::move(id), std::move(tenant)));
  CO_TRY(gone, co_await Of::remove(plane, std::move(doomed), std::move(again)));
  note_record<Of>(plane, "deleted", record, caller, request);
  json::object out = Of::id_member(record);
  out["deleted"] = true;
  co_return net::Response::json(out);
}

// All routes but the list.
template <class Of>
void add_record_routes(net::Router& router, Plane& plane) {
  const std::string all = fmt::format("/v1/{}s", Of::kWhat), one = fmt::format("{}/{{{}}}", all, Of::kIdField);
  add_guarded(router, plane, net::Method::post, all, kAdmins, add_record<Of>);
  add_guarded(router, plane, net::Method::get, one, kReadersAndRunners, show_record<Of>);
  add_guarded(router, plane, net::Method::put, one, kAdmins, replace_record<Of>);
  add_guarded(router, plane, net::Method::del, one, kAdmins, remove_record<Of>);
}

}  // namespace weir::control_plane
