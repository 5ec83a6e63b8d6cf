#include "displays.hpp"

#include "models.hpp"

#include "weir/base/log_once.hpp"
#include "weir/ports/cameras.hpp"
#include "weir/ports/store_errors.hpp"

namespace weir::postgres {

namespace {

#define WEIR_PLAYLIST_COLUMNS "playlist_id, tenant_id, name, model_id, created_at, updated_at"
#define WEIR_DISPLAY_COLUMNS                                                                                         \
  "display_id, tenant_id, name, coalesce(camera_uuid, ''), coalesce(playlist_id, ''), created_at, updated_at"
#define WEIR_SUBSCRIPTION_COLUMNS "subscription_identifier, tenant_id, camera_uuid, model_id, options, created_at"

// For a row that is to be written, and for rows that it will refer to.
constexpr const char* kTenantOfPlaylist = "SELECT tenant_id FROM playlists WHERE playlist_id = $1::text FOR UPDATE";
constexpr const char* kTenantOfDisplay = "SELECT tenant_id FROM displays WHERE display_id = $1::text FOR UPDATE";
constexpr const char* kTenantOfSubscription =
    "SELECT tenant_id FROM subscriptions WHERE subscription_identifier = $1::text FOR UPDATE";
constexpr const char* kTenantOfCameraNamed = "SELECT tenant_id FROM cameras WHERE camera_uuid = $1::text FOR KEY SHARE";
constexpr const char* kTenantOfPlaylistNamed =
    "SELECT tenant_id FROM playlists WHERE playlist_id = $1::text FOR KEY SHARE";

WallTime wall(const Rows& r, int i, int column) { return WallTime(Duration(r.integer(i, column))); }

PlaylistRecord playlist_row(const Rows& r, int i) {
  return {r.id<PlaylistId>(i, 0), r.id<TenantId>(i, 1), r.text(i, 2), r.integer(i, 3), wall(r, i, 4), wall(r, i, 5)};
}
DisplayRecord display_row(const Rows& r, int i) {
  return {r.id<DisplayId>(i, 0),  r.id<TenantId>(i, 1), r.text(i, 2), r.id<CameraId>(i, 3),
          r.id<PlaylistId>(i, 4), wall(r, i, 5),        wall(r, i, 6)};
}
SubscriptionRecord subscription_row(const Rows& r, int i) {
  return {r.id<SubscriptionId>(i, 0), r.id<TenantId>(i, 1),       r.id<CameraId>(i, 2),
          r.integer(i, 3),            read_options(r.view(i, 4)), wall(r, i, 5)};
}

// All rows that the statement found.
template <class Row>
std::vector<Row> rows_of(const Rows& found, Row (*read)(const Rows&, int)) {
  std::vector<Row> rows;
  for (int i = 0; i < found.size(); ++i) rows.push_back(read(found, i));
  return rows;
}

}  // namespace

// ---- playlists ----

Result<PlaylistRecord> put_playlist(Connection& c, PlaylistRecord playlist, Put how) {
  Transaction tx(c);
  auto present = tenant_in(c, kTenantOfPlaylist, playlist.id);
  TRY(free, may_put(present, playlist.tenant, how, "playlist", "playlist_id"));
  if (!has_tenant(c, playlist.tenant)) return no_such("tenant", "tenant_id");
  if (tenant_in(c, kTenantOfModel, playlist.model) != playlist.tenant) return no_such("model", "model_id");
  Rows rows = c.query(
      "INSERT INTO playlists SELECT $1::text, $2::text, $3::text, $4::bigint, k, k FROM (SELECT weir_clock() AS k) t"
      " ON CONFLICT (playlist_id) DO UPDATE SET name = excluded.name, model_id = excluded.model_id,"
      " updated_at = excluded.updated_at WHERE $5::boolean RETURNING " WEIR_PLAYLIST_COLUMNS,
      Params() << playlist.id << playlist.tenant << playlist.name << playlist.model << (how == Put::replace));
  if (rows.size() == 0) return exists_already("playlist", "playlist_id");
  tx.commit();
  return playlist_row(rows, 0);
}

std::vector<PlaylistRecord> list_playlists(Connection& c, const TenantId& tenant, const PlaylistId& after, int limit) {
  return rows_of(c.query("SELECT " WEIR_PLAYLIST_COLUMNS
                         " FROM playlists WHERE playlist_id > $1::text AND ($2::text = '' OR tenant_id = $2)"
                         " ORDER BY playlist_id LIMIT $3::int",
                         Params() << after << tenant << limit),
                 playlist_row);
}

Result<PlaylistRecord> show_playlist(Connection& c, const PlaylistId& id, const TenantId& tenant) {
  Rows rows = c.query("SELECT " WEIR_PLAYLIST_COLUMNS
                      " FROM playlists WHERE playlist_id = $1::text AND ($2::text = '' OR tenant_id = $2)",
                      Params() << id << tenant);
  if (rows.size() == 0) return no_such("playlist", "playlist_id");
  return playlist_row(rows, 0);
}

// The row is locked first: no display can name the playlist between the look at which do and its end.
Result<Nothing> remove_playlist(Connection& c, const PlaylistId& id, const TenantId& tenant) {
  Transaction tx(c);
  auto present = tenant_in(c, kTenantOfPlaylist, id);
  if (!present || (!tenant.empty() && tenant != *present)) return no_such("playlist", "playlist_id");
  Rows user = c.query("SELECT 'display ' || display_id FROM displays WHERE playlist_id = $1::text LIMIT 1",
                      Params() << id);
  if (user.size() > 0) return in_use("playlist", user.view(0, 0));
  c.query("DELETE FROM playlists WHERE playlist_id = $1::text", Params() << id);
  tx.commit();
  return ok();
}

// ---- displays ----

Result<DisplayRecord> put_display(Connection& c, DisplayRecord display, Put how) {
  Transaction tx(c);
  auto present = tenant_in(c, kTenantOfDisplay, display.id);
  TRY(free, may_put(present, display.tenant, how, "display", "display_id"));
  if (!has_tenant(c, display.tenant)) return no_such("tenant", "tenant_id");
  if (!display.camera.empty() && tenant_in(c, kTenantOfCameraNamed, display.camera) != display.tenant)
    return no_such("camera", "camera_uuid");
  if (!display.playlist.empty() && tenant_in(c, kTenantOfPlaylistNamed, display.playlist) != display.tenant)
    return no_such("playlist", "playlist_id");
  Rows rows = c.query(
      "INSERT INTO displays SELECT $1::text, $2::text, $3::text, nullif($4::text, ''), nullif($5::text, ''), k, k"
      " FROM (SELECT weir_clock() AS k) t ON CONFLICT (display_id) DO UPDATE SET name = excluded.name,"
      " camera_uuid = excluded.camera_uuid, playlist_id = excluded.playlist_id, updated_at = excluded.updated_at"
      " WHERE $6::boolean RETURNING " WEIR_DISPLAY_COLUMNS,
      Params() << display.id << display.tenant << display.name << display.camera << display.playlist
               << (how == Put::replace));
  if (rows.size() == 0) return exists_already("display", "display_id");
  tx.commit();
  return display_row(rows, 0);
}

std::vector<DisplayRecord> list_displays(Connection& c, const TenantId& tenant, const DisplayId& after, int limit) {
  return rows_of(c.query("SELECT " WEIR_DISPLAY_COLUMNS
                         " FROM displays WHERE display_id > $1::text AND ($2::text = '' OR tenant_id = $2)"
                         " ORDER BY display_id LIMIT $3::int",
                         Params() << after << tenant << limit),
                 display_row);
}

Result<DisplayRecord> show_display(Connection& c, const DisplayId& id, const TenantId& tenant) {
  Rows rows = c.query("SELECT " WEIR_DISPLAY_COLUMNS
                      " FROM displays WHERE display_id = $1::text AND ($2::text = '' OR tenant_id = $2)",
                      Params() << id << tenant);
  if (rows.size() == 0) return no_such("display", "display_id");
  return display_row(rows, 0);
}

Result<Nothing> remove_display(Connection& c, const DisplayId& id, const TenantId& tenant) {
  Rows rows = c.query("DELETE FROM displays WHERE display_id = $1::text AND ($2::text = '' OR tenant_id = $2)",
                      Params() << id << tenant);
  if (rows.changed() == 0) return no_such("display", "display_id");
  return ok();
}

// ---- subscriptions ----

Result<SubscriptionRecord> put_subscription(Connection& c, SubscriptionRecord subscription) {
  Transaction tx(c);
  auto present = tenant_in(c, kTenantOfSubscription, subscription.id);
  if (present && present != subscription.tenant) return exists_already("subscription", "subscription_identifier");
  if (tenant_in(c, kTenantOfCameraNamed, subscription.camera) != subscription.tenant)
    return no_such("camera", "camera_uuid");
  if (tenant_in(c, kTenantOfModel, subscription.model) != subscription.tenant) return no_such("model", "model_id");
  // The camera is part of the identifier, so whoever else makes the same one now is of the same tenant.
  Rows rows = c.query(
      "INSERT INTO subscriptions SELECT $1::text, $2::text, $3::text, $4::bigint, $5::text, weir_clock()"
      " ON CONFLICT (subscription_identifier) DO UPDATE SET model_id = excluded.model_id, options = excluded.options,"
      " created_at = excluded.created_at RETURNING " WEIR_SUBSCRIPTION_COLUMNS,
      Params() << subscription.id << subscription.tenant << subscription.camera << subscription.model
               << write_options(subscription.options));
  tx.commit();
  return subscription_row(rows, 0);
}

std::vector<SubscriptionRecord> list_subscriptions(Connection& c, const TenantId& tenant, const SubscriptionId& after,
                                                   int limit) {
  return rows_of(c.query("SELECT " WEIR_SUBSCRIPTION_COLUMNS
                         " FROM subscriptions WHERE subscription_identifier > $1::text"
                         " AND ($2::text = '' OR tenant_id = $2) ORDER BY subscription_identifier LIMIT $3::int",
                         Params() << after << tenant << limit),
                 subscription_row);
}

Result<SubscriptionRecord> remove_subscription(Connection& c, const SubscriptionId& id, const TenantId& tenant) {
  Rows rows = c.query("DELETE FROM subscriptions WHERE subscription_identifier = $1::text"
                      " AND ($2::text = '' OR tenant_id = $2) RETURNING " WEIR_SUBSCRIPTION_COLUMNS,
                      Params() << id << tenant);
  if (rows.size() == 0) return no_such("subscription", "subscription_identifier");
  return subscription_row(rows, 0);
}

// ---- all together ----

namespace {

// One page of at most `limit` rows, whether they can be read or not.
Rows desired_rows(Connection& c, const ClusterId& cluster, const TenantId& tenant, const SubscriptionId& after,
                  int limit) {
  return c.query(
      "SELECT w.identifier, w.ad_hoc, w.options, w.created_at, l.version, c.config, c.camera_uuid, " WEIR_MODEL_COLUMNS
      " FROM (SELECT d.display_id || ';' || d.camera_uuid AS identifier, false AS ad_hoc, '{}' AS options,"
      "  d.created_at, d.camera_uuid, p.model_id FROM displays d JOIN playlists p USING (playlist_id) UNION ALL"
      " SELECT subscription_identifier, true, options, created_at, camera_uuid, model_id FROM subscriptions) w"
      " JOIN leases l ON l.camera_uuid = w.camera_uuid JOIN cameras c ON c.camera_uuid = w.camera_uuid"
      " JOIN models m ON m.model_id = w.model_id"
      " WHERE l.cluster = $1::text AND ($2::text = '' OR c.tenant_id = $2) AND w.identifier > $3::text"
      " AND (w.ad_hoc OR NOT EXISTS"
      "  (SELECT 1 FROM subscriptions s WHERE s.subscription_identifier = w.identifier))"
      " ORDER BY w.identifier LIMIT $4::int",
      Params() << cluster << tenant << after << limit);
}

}  // namespace

std::vector<DesiredSubscription> list_desired(Connection& c, const ClusterId& cluster, const TenantId& tenant,
                                              const SubscriptionId& after, int limit) {
  std::vector<DesiredSubscription> desired;
  SubscriptionId last = after;
  for (bool more = true; more;) {
    int wanted = limit - static_cast<int>(desired.size());
    Rows rows = desired_rows(c, cluster, tenant, last, wanted);
    for (int i = 0; i < rows.size(); ++i) {
      last = rows.id<SubscriptionId>(i, 0);
      auto config = read_kept(rows.view(i, 5));
      if (!config) {
        log::error_once(kUnreadableCamera, config.error().message, "camera_uuid", rows.view(i, 6));
        continue;
      }
      SubscriptionOptions options = completed(read_options(rows.view(i, 2)), *config);
      desired.push_back({last, rows.flag(i, 1), *std::move(config), model_row(rows, i, 7), std::move(options),
                         wall(rows, i, 3), {rows.integer(i, 4)}});
    }
    more = rows.size() == wanted && static_cast<int>(desired.size()) < limit;
  }
  return desired;
}

}  // namespace weir::postgres
