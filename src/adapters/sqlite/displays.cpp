#include "displays.hpp"

#include "models.hpp"

#include "weir/base/log_once.hpp"
#include "weir/ports/cameras.hpp"
#include "weir/ports/store_errors.hpp"

namespace weir::sqlite {

namespace {

#define WEIR_PLAYLIST_COLUMNS "playlist_id, tenant_id, name, model_id, created_at, updated_at"
#define WEIR_DISPLAY_COLUMNS "display_id, tenant_id, name, camera_uuid, playlist_id, created_at, updated_at"
#define WEIR_SUBSCRIPTION_COLUMNS "subscription_identifier, tenant_id, camera_uuid, model_id, options, created_at"

constexpr const char* kTenantOfPlaylist = "SELECT tenant_id FROM playlists WHERE playlist_id = ?";
constexpr const char* kTenantOfDisplay = "SELECT tenant_id FROM displays WHERE display_id = ?";
constexpr const char* kTenantOfCamera = "SELECT tenant_id FROM cameras WHERE camera_uuid = ?";
constexpr const char* kTenantOfSubscription =
    "SELECT tenant_id FROM subscriptions WHERE subscription_identifier = ?";

PlaylistRecord playlist_row(const Query& q) {
  return {q.id<PlaylistId>(0), q.id<TenantId>(1), q.text(2), q.integer(3), q.wall(4), q.wall(5)};
}
DisplayRecord display_row(const Query& q) {
  return {q.id<DisplayId>(0),  q.id<TenantId>(1), q.text(2), q.id<CameraId>(3),
          q.id<PlaylistId>(4), q.wall(5),         q.wall(6)};
}
SubscriptionRecord subscription_row(const Query& q) {
  return {q.id<SubscriptionId>(0), q.id<TenantId>(1), q.id<CameraId>(2), q.integer(3), read_options(q.text(4)),
          q.wall(5)};
}

// All rows that the statement finds.
template <class Row>
std::vector<Row> rows_of(Query& q, Row (*read)(const Query&)) {
  std::vector<Row> rows;
  while (q.next()) rows.push_back(read(q));
  return rows;
}

}  // namespace

// ---- playlists ----

Result<PlaylistRecord> put_playlist(Db& db, WallTime clock, PlaylistRecord playlist, Put how) {
  auto present = tenant_in(db, kTenantOfPlaylist, playlist.id);
  TRY(free, may_put(present, playlist.tenant, how, "playlist", "playlist_id"));
  if (!has_tenant(db, playlist.tenant)) return no_such("tenant", "tenant_id");
  if (tenant_in(db, kTenantOfModel, playlist.model) != playlist.tenant) return no_such("model", "model_id");
  Query q = db.query(
      "INSERT INTO playlists VALUES (?1, ?2, ?3, ?4, ?5, ?5) ON CONFLICT (playlist_id) DO UPDATE SET name = ?3, "
      "model_id = ?4, updated_at = ?5 RETURNING " WEIR_PLAYLIST_COLUMNS);
  q << playlist.id << playlist.tenant << playlist.name << playlist.model << clock;
  WEIR_ASSERT(q.next());
  return playlist_row(q);
}

std::vector<PlaylistRecord> list_playlists(Db& db, const TenantId& tenant, const PlaylistId& after, int limit) {
  Query q = db.query("SELECT " WEIR_PLAYLIST_COLUMNS
                     " FROM playlists WHERE playlist_id > ?1 AND (?2 = '' OR tenant_id = ?2) ORDER BY playlist_id "
                     "LIMIT ?3");
  q << after << tenant << limit;
  return rows_of(q, playlist_row);
}

Result<PlaylistRecord> show_playlist(Db& db, const PlaylistId& id, const TenantId& tenant) {
  Query q = db.query("SELECT " WEIR_PLAYLIST_COLUMNS
                     " FROM playlists WHERE playlist_id = ?1 AND (?2 = '' OR tenant_id = ?2)");
  q << id << tenant;
  if (!q.next()) return no_such("playlist", "playlist_id");
  return playlist_row(q);
}

Result<Nothing> remove_playlist(Db& db, const PlaylistId& id, const TenantId& tenant) {
  TRY(present, show_playlist(db, id, tenant));
  {
    Query q = db.query("SELECT 'display ' || display_id FROM displays WHERE playlist_id = ? LIMIT 1");
    q << id;
    if (q.next()) return in_use("playlist", q.text(0));
  }
  Query q = db.query("DELETE FROM playlists WHERE playlist_id = ?");
  q << id;
  q.run();
  return ok();
}

// ---- displays ----

Result<DisplayRecord> put_display(Db& db, WallTime clock, DisplayRecord display, Put how) {
  auto present = tenant_in(db, kTenantOfDisplay, display.id);
  TRY(free, may_put(present, display.tenant, how, "display", "display_id"));
  if (!has_tenant(db, display.tenant)) return no_such("tenant", "tenant_id");
  if (!display.camera.empty() && tenant_in(db, kTenantOfCamera, display.camera) != display.tenant)
    return no_such("camera", "camera_uuid");
  if (!display.playlist.empty() && tenant_in(db, kTenantOfPlaylist, display.playlist) != display.tenant)
    return no_such("playlist", "playlist_id");
  Query q = db.query(
      "INSERT INTO displays VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6) ON CONFLICT (display_id) DO UPDATE SET name = ?3, "
      "camera_uuid = ?4, playlist_id = ?5, updated_at = ?6 RETURNING " WEIR_DISPLAY_COLUMNS);
  q << display.id << display.tenant << display.name << display.camera << display.playlist << clock;
  WEIR_ASSERT(q.next());
  return display_row(q);
}

std::vector<DisplayRecord> list_displays(Db& db, const TenantId& tenant, const DisplayId& after, int limit) {
  Query q = db.query("SELECT " WEIR_DISPLAY_COLUMNS
                     " FROM displays WHERE display_id > ?1 AND (?2 = '' OR tenant_id = ?2) ORDER BY display_id "
                     "LIMIT ?3");
  q << after << tenant << limit;
  return rows_of(q, display_row);
}

Result<DisplayRecord> show_display(Db& db, const DisplayId& id, const TenantId& tenant) {
  Query q = db.query("SELECT " WEIR_DISPLAY_COLUMNS
                     " FROM displays WHERE display_id = ?1 AND (?2 = '' OR tenant_id = ?2)");
  q << id << tenant;
  if (!q.next()) return no_such("display", "display_id");
  return display_row(q);
}

Result<Nothing> remove_display(Db& db, const DisplayId& id, const TenantId& tenant) {
  Query q = db.query("DELETE FROM displays WHERE display_id = ?1 AND (?2 = '' OR tenant_id = ?2)");
  q << id << tenant;
  if (q.run() == 0) return no_such("display", "display_id");
  return ok();
}

// ---- subscriptions ----

Result<SubscriptionRecord> put_subscription(Db& db, WallTime clock, SubscriptionRecord subscription) {
  auto present = tenant_in(db, kTenantOfSubscription, subscription.id);
  if (present && present != subscription.tenant) return exists_already("subscription", "subscription_identifier");
  if (tenant_in(db, kTenantOfCamera, subscription.camera) != subscription.tenant)
    return no_such("camera", "camera_uuid");
  if (tenant_in(db, kTenantOfModel, subscription.model) != subscription.tenant) return no_such("model", "model_id");
  subscription.created_at = clock;
  Query q = db.query("INSERT OR REPLACE INTO subscriptions VALUES (?, ?, ?, ?, ?, ?)");
  q << subscription.id << subscription.tenant << subscription.camera << subscription.model
    << write_options(subscription.options) << clock;
  q.run();
  return subscription;
}

std::vector<SubscriptionRecord> list_subscriptions(Db& db, const TenantId& tenant, const SubscriptionId& after,
                                                   int limit) {
  Query q = db.query("SELECT " WEIR_SUBSCRIPTION_COLUMNS
                     " FROM subscriptions WHERE subscription_identifier > ?1 AND (?2 = '' OR tenant_id = ?2) "
                     "ORDER BY subscription_identifier LIMIT ?3");
  q << after << tenant << limit;
  return rows_of(q, subscription_row);
}

Result<SubscriptionRecord> remove_subscription(Db& db, const SubscriptionId& id, const TenantId& tenant) {
  Query q = db.query("DELETE FROM subscriptions WHERE subscription_identifier = ?1 AND (?2 = '' OR tenant_id = ?2) "
                     "RETURNING " WEIR_SUBSCRIPTION_COLUMNS);
  q << id << tenant;
  if (!q.next()) return no_such("subscription", "subscription_identifier");
  return subscription_row(q);
}

// ---- all together ----

std::vector<DesiredSubscription> list_desired(Db& db, const ClusterId& cluster, const TenantId& tenant,
                                              const SubscriptionId& after, int limit) {
  Query q = db.query(
      "SELECT w.identifier, w.ad_hoc, w.options, w.created_at, l.version, c.config, c.camera_uuid, " WEIR_MODEL_COLUMNS
      " FROM (SELECT d.display_id || ';' || d.camera_uuid AS identifier, 0 AS ad_hoc, '{}' AS options, d.created_at,"
      "  d.camera_uuid, p.model_id FROM displays d JOIN playlists p USING (playlist_id) UNION ALL"
      " SELECT subscription_identifier, 1, options, created_at, camera_uuid, model_id FROM subscriptions) w"
      " JOIN leases l USING (camera_uuid) JOIN cameras c USING (camera_uuid) JOIN models m USING (model_id)"
      " WHERE l.cluster = ?1 AND (?2 = '' OR c.tenant_id = ?2) AND w.identifier > ?3 AND (w.ad_hoc = 1 OR NOT EXISTS"
      " (SELECT 1 FROM subscriptions s WHERE s.subscription_identifier = w.identifier)) ORDER BY w.identifier");
  q << cluster << tenant << after;
  std::vector<DesiredSubscription> desired;
  while (static_cast<int>(desired.size()) < limit && q.next()) {
    auto config = read_kept(q.text(5));
    if (!config) {
      log::error_once(kUnreadableCamera, config.error().message, "camera_uuid", q.text(6));
      continue;
    }
    SubscriptionOptions options = completed(read_options(q.text(2)), *config);
    desired.push_back({q.id<SubscriptionId>(0), q.integer(1) != 0, *std::move(config), model_row(q, 7),
                       std::move(options), q.wall(3), {q.integer(4)}});
  }
  return desired;
}

}  // namespace weir::sqlite
