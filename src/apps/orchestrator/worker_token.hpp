// The token with which an orchestrator's stream workers publish what they see: one for all of them, in a file.
//
// It is a file, because workers outlive the orchestrator that started them, and the next one of the same boot must be
// able to hand them a fresh token without knowing them. Only this user can read it. Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/http_plane/stream_plane.hpp"

#include <string>

namespace weir::apps {

// Gets a token from the control plane, writes it there, and gets the next one when a third of its life is over. Never
// ends by itself; the plane and the clock outlive it.
boost::asio::awaitable<void> keep_worker_token(http_plane::HttpStreamPlane& plane, Clock& clock, BootId boot,
                                               std::string path);

}  // namespace weir::apps
