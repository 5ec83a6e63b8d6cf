// The warnings in answers about cameras and zones: what camera::advise makes of what this control plane knows.
//
// Runners ask for cameras often and cannot mend one: they are not advised. Loop thread only.
#pragma once

#include "plane.hpp"

namespace weir::control_plane {

bool is_advised(const Caller& caller);
// Asks the store which models the runners have, where that was not done lately. Where that fails, what was known
// stays; a route that only advises goes on with it.
boost::asio::awaitable<Status> learn_models(Plane& plane);
// [{"code","field","message"}], empty where nothing is wrong.
json::array warnings_on(const Plane& plane, const camera::Config& config);
json::array warnings_on(const Plane& plane, const camera::Config& config, const camera::Zone& zone);

}  // namespace weir::control_plane
