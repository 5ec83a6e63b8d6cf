// The bodies of the routes about what detector clusters shall look at: displays, playlists, models and subscriptions,
// from JSON to records, and from records to JSON.
//
// A body that was read from an answer may be sent back: what only the control plane says of a record is dropped.
// Problems name the field's path. Pure functions; no state.
#pragma once

#include "access.hpp"

#include "weir/base/json.hpp"
#include "weir/ports/displays.hpp"

namespace weir::control_plane {

inline constexpr size_t kMetadataBytesMax = 16 << 10;  // of a model, as JSON

Result<ModelId> path_model_id(const net::Request& request);

Result<DisplayRecord> read_display(json::object body);
Result<PlaylistRecord> read_playlist(json::object body);
Result<ModelRecord> read_model(json::object body);
// The tenant is left open: it is the camera's.
Result<SubscriptionRecord> read_subscription(json::object body, const camera::Rules& rules);

json::object write_display(const DisplayRecord& display);
json::object write_playlist(const PlaylistRecord& playlist);
json::object write_model(const ModelRecord& model);
json::object write_subscription(const SubscriptionRecord& subscription, const Caller& caller);
// With all credentials, for those who open the camera's stream.
json::object write_desired(const DesiredSubscription& desired);

}  // namespace weir::control_plane
