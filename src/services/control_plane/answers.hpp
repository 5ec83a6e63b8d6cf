// Answers: how tenants, sites, cameras and runners look in JSON, and how an error does. Plain functions.
#pragma once

#include "weir/base/json.hpp"
#include "weir/camera/config.hpp"
#include "weir/net/http.hpp"
#include "weir/ports/cameras.hpp"
#include "weir/ports/runners.hpp"
#include "weir/ports/sites.hpp"

namespace weir::control_plane {

// A number that is written as 10, not as 1E1.
json::value number(double value);

json::object write_tenant(const Tenant& tenant);
// `at`: when the site was read. Tokens come back continuously, so the bucket holds these then.
json::object write_site(const Site& site, WallTime at);
json::object write_budget(const Site& site, WallTime at);
json::object write_camera(const CameraRecord& record, camera::Credentials credentials);
json::object write_zone_of(const CameraId& camera, const camera::Zone& zone);
// The SHA-256 of zones as JSON, in the order of their ids and with sorted keys: the same wherever the zones are the same.
std::string zone_version(const camera::Config& config);
json::object write_runner(const Runner& runner);

// The error as a response, with the headers that its status asks for. The details of an internal error, and the
// reason why the store does not answer, go to the log, not to the client.
net::Response failed(const Error& error);

}  // namespace weir::control_plane
