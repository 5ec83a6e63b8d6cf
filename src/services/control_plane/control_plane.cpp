#include "weir/control_plane/control_plane.hpp"

#include "plane.hpp"

namespace weir::control_plane {

ControlPlane::ControlPlane(LeaseStore& leases, Catalog& catalog, EventLog& events, Keys& keys,
                           Pictures& pictures, ModelDisk& model_disk, Clock& clock, net::TokenKey key,
                           net::Metrics& metrics, ControlPlaneSettings settings)
    : plane_(std::make_unique<Plane>(leases, catalog, events, keys, pictures, model_disk, clock, std::move(key), metrics,
                                     std::move(settings))) {}

ControlPlane::~ControlPlane() = default;

void ControlPlane::add_routes(net::Router& router) {
  add_health_routes(router, *plane_);
  add_lease_routes(router, *plane_);
  add_site_routes(router, *plane_);
  add_camera_routes(router, *plane_);
  add_stream_routes(router, *plane_);
  add_snapshot_routes(router, *plane_);
  add_zone_routes(router, *plane_);
  add_runner_routes(router, *plane_);
  add_model_routes(router, *plane_);
  add_model_file_routes(router, *plane_);
  add_display_routes(router, *plane_);
  add_event_routes(router, *plane_);
  add_auth_routes(router, *plane_);
}

void ControlPlane::announce_camera(std::string_view what, const CameraRecord& camera) {
  plane_->announcer.camera(what, camera);
}

void ControlPlane::observe(const net::Finished& finished) { plane_->instruments.request(finished); }

}  // namespace weir::control_plane
