// Desired state: which subscriptions the rows of the control plane ask for.
//
// A display that has a camera and a playlist asks for one subscription: that camera's stream, through the playlist's
// model. Only enabled cameras with `processing: cluster` take part; runners serve the others. An ad-hoc subscription
// asks by itself. The whole list is made anew from all rows each time, so that no change can be missed. Every display
// and ad-hoc subscription that yields none is named with the reason. Pure; any thread.
#pragma once

#include "weir/cluster/subscription.hpp"

#include <span>

namespace weir::cluster {

struct DisplayRow {
  std::string id;
  TenantId tenant = {};
  std::string camera = {};    // "" while none is chosen
  std::string playlist = {};  // the same
  std::optional<Crop> crop = {};
  WallTime created_at{};
};
struct CameraRow {
  std::string id;
  TenantId tenant = {};
  bool enabled = true;
  bool by_cluster = false;  // processing: cluster
  Secret rtsp_url = {};
  std::optional<Secret> snapshot_url = {};
  std::optional<std::chrono::milliseconds> snapshot_every = {};
};
struct PlaylistRow {
  std::string id;
  TenantId tenant = {};
  std::optional<std::int64_t> model = {};
};
struct ModelRow {
  std::int64_t id = 0;
  TenantId tenant = {};  // empty: every tenant may use it
  std::string name = {};
  std::string checksum = {};
};
struct AdHocRow {
  std::string identifier;
  TenantId tenant = {};
  Secret rtsp_url = {};  // empty: the camera's row has it
  std::optional<Secret> snapshot_url = {};
  std::optional<std::chrono::milliseconds> snapshot_every = {};
  std::int64_t model = 0;
  std::optional<Crop> crop = {};
  WallTime created_at{};
};

struct Rows {
  std::span<const DisplayRow> displays = {};
  std::span<const CameraRow> cameras = {};
  std::span<const PlaylistRow> playlists = {};
  std::span<const ModelRow> models = {};
  std::span<const AdHocRow> ad_hoc = {};
};

// Something that asks for no subscription, or asks in vain.
struct LeftOut {
  std::string what;    // the display's id, or the ad-hoc subscription's identifier
  std::string reason;  // in words
  friend bool operator==(const LeftOut&, const LeftOut&) = default;
};

struct Desired {
  DesiredSubscriptions subscriptions = {};
  std::vector<LeftOut> left_out = {};
};

Desired desire(const Rows& rows);

}  // namespace weir::cluster
