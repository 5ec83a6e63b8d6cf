// Displays: what detector clusters shall look at: displays, the playlists that they show, and ad-hoc subscriptions.
//
// A display shows a playlist to those who stand before its camera, and the playlist says which model looks. Together
// they make one subscription of the cluster that processes the camera, named by display and camera. Somebody may also
// subscribe to a camera ad hoc, without a display; such a subscription replaces the one of a display that has the same
// name. `list_desired` puts it all together: everything that one cluster shall do, and nothing else.
//
// All that stands in one row belongs to one tenant. A playlist that a display names is not removed. A camera can be:
// its displays go on without a camera, and its ad-hoc subscriptions end. Tenant-scoped callers pass their tenant; an
// empty one means all. An id that another tenant has answers `conflict` without detail on creation and `not_found`
// otherwise. Loop thread only; the plain functions: any thread.
#pragma once

#include "weir/base/json.hpp"
#include "weir/camera/config.hpp"
#include "weir/lease/version.hpp"
#include "weir/ports/models.hpp"

namespace weir {

struct DisplayTag {
  static constexpr std::string_view name = "display_id";
};
struct PlaylistTag {
  static constexpr std::string_view name = "playlist_id";
};
struct SubscriptionTag {
  static constexpr std::string_view name = "subscription_identifier";
};
using DisplayId = Id<DisplayTag>;
using PlaylistId = Id<PlaylistTag>;
using SubscriptionId = Id<SubscriptionTag>;

struct PlaylistRecord {
  PlaylistId id;
  TenantId tenant = {};
  std::string name = {};
  ModelId model = 0;
  WallTime created_at{};
  WallTime updated_at{};
};

struct DisplayRecord {
  DisplayId id;
  TenantId tenant = {};
  std::string name = {};
  CameraId camera = {};      // empty: none yet
  PlaylistId playlist = {};  // empty: none yet
  WallTime created_at{};
  WallTime updated_at{};
};

// How a worker gets at the pictures of a subscription, besides the camera's own stream.
struct SubscriptionOptions {
  std::optional<Secret> snapshot_url = {};
  std::optional<int> snapshot_interval_ms = {};
  std::optional<int> crop_x1 = {}, crop_y1 = {}, crop_x2 = {}, crop_y2 = {};  // all or none; pixels
};
// "" where the four corners make a rectangle, or none is given.
std::string crop_problem(const SubscriptionOptions& options);
template <class V>
void fields(V& v, SubscriptionOptions& o) {
  constexpr int kPixelsMax = 32768;
  v.optional("snapshot_url", o.snapshot_url, camera::snapshot_url_problem);
  v.optional("snapshot_interval_ms", o.snapshot_interval_ms, json::range(100, 86'400'000));
  v.optional("crop_x1", o.crop_x1, json::range(0, kPixelsMax));
  v.optional("crop_y1", o.crop_y1, json::range(0, kPixelsMax));
  v.optional("crop_x2", o.crop_x2, json::range(0, kPixelsMax));
  v.optional("crop_y2", o.crop_y2, json::range(0, kPixelsMax));
  v.rule("crop_x1", crop_problem(o));
}
// As a store keeps them; where the text is unreadable, none.
std::string write_options(const SubscriptionOptions& options);
SubscriptionOptions read_options(std::string_view text);

struct SubscriptionRecord {
  SubscriptionId id;  // "DISPLAY;CAMERA"
  TenantId tenant = {};
  CameraId camera = {};
  ModelId model = 0;
  SubscriptionOptions options = {};
  WallTime created_at{};
};

// The display and the camera that an identifier names: they stand before and after its first semicolon, so no display's
// id has one.
struct SubscriptionParts {
  DisplayId display;
  CameraId camera;
};
Result<SubscriptionParts> parts_of(std::string_view identifier);

// One subscription that a cluster shall have.
struct DesiredSubscription {
  SubscriptionId id;
  bool ad_hoc = false;
  camera::Config camera;
  ModelRecord model;
  SubscriptionOptions options = {};  // what an ad-hoc one leaves out is the camera's
  WallTime created_at{};             // of the subscription, or of its display
  lease::Version above = {};  // of the camera's row: only a later version of the cluster's lease may speak for it
};
// The options with the camera's own snapshot and crop where they have none.
SubscriptionOptions completed(SubscriptionOptions options, const camera::Config& camera);

class Displays {
 public:
  virtual ~Displays() = default;

  virtual Async<PlaylistRecord> put_playlist(PlaylistRecord playlist, Put how) = 0;
  virtual Async<std::vector<PlaylistRecord>> list_playlists(TenantId tenant, PlaylistId after, int limit) = 0;
  virtual Async<PlaylistRecord> show_playlist(PlaylistId id, TenantId tenant) = 0;
  virtual Async<Nothing> remove_playlist(PlaylistId id, TenantId tenant) = 0;  // only one that no display names

  virtual Async<DisplayRecord> put_display(DisplayRecord display, Put how) = 0;
  virtual Async<std::vector<DisplayRecord>> list_displays(TenantId tenant, DisplayId after, int limit) = 0;
  virtual Async<DisplayRecord> show_display(DisplayId id, TenantId tenant) = 0;
  virtual Async<Nothing> remove_display(DisplayId id, TenantId tenant) = 0;

  // Makes the subscription anew, also where there is one under its name.
  virtual Async<SubscriptionRecord> put_subscription(SubscriptionRecord subscription) = 0;
  virtual Async<std::vector<SubscriptionRecord>> list_subscriptions(TenantId tenant, SubscriptionId after,
                                                                    int limit) = 0;
  // Answers what it removed.
  virtual Async<SubscriptionRecord> remove_subscription(SubscriptionId id, TenantId tenant) = 0;

  // In the order of the identifiers. A camera whose stored configuration cannot be read is left out, as in lists of
  // cameras.
  virtual Async<std::vector<DesiredSubscription>> list_desired(ClusterId cluster, TenantId tenant,
                                                               SubscriptionId after, int limit) = 0;
};

}  // namespace weir
