#include "place.hpp"

#include "request.hpp"

#include "weir/ports/store_errors.hpp"

namespace weir::control_plane {

Result<Place> place_of(const net::Request& request, const Caller& caller) {
  if (!request.params.contains(TenantId::field_name)) return Place{caller.tenant, {}};
  TRY(tenant, path_id<TenantId>(request));
  TRY(site, path_id<SiteId>(request));
  TRY(allowed, tenant_for(caller, tenant));
  return Place{allowed, site};
}

Status stands_at(const CameraRecord& record, const Place& place) {
  bool here = (place.tenant.empty() || record.config.tenant == place.tenant) &&
              (place.site.empty() || record.config.site == place.site);
  if (here) return ok();
  return no_such("camera", "camera_uuid");
}

Status fill_from_path(json::object& body, std::string_view field, const std::string& value) {
  json::value& place = body[field];
  if (place.is_null()) place = value;
  if (place.is_string() && std::string_view(place.get_string()) == value) return ok();
  return bad_field(field, place.is_string() ? "must equal the one in the path" : "must be a string");
}

}  // namespace weir::control_plane
