// Place: where a camera route works. The nested routes name a tenant and a site in their path, the flat ones neither.
//
// The path's tenant and site fill the fields that a body leaves out, and a body that names others is wrong. Plain
// values.
#pragma once

#include "access.hpp"

#include "weir/base/ids.hpp"
#include "weir/base/json.hpp"
#include "weir/net/http.hpp"
#include "weir/ports/cameras.hpp"

namespace weir::control_plane {

struct Place {
  TenantId tenant = {};  // the caller's, or the path's; empty: any
  SiteId site = {};      // empty: any
  bool nested() const { return !site.empty(); }
};

Result<Place> place_of(const net::Request& request, const Caller& caller);
// The record, if it stands at this place; otherwise it does not exist here.
Status stands_at(const CameraRecord& record, const Place& place);
// Puts `value` into the body where it has none; 400 where it has another one.
Status fill_from_path(json::object& body, std::string_view field, const std::string& value);

}  // namespace weir::control_plane
