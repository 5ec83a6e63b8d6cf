// What detector clusters shall look at, in the fake.
#include "fake_store.hpp"

#include <algorithm>

namespace weir::test {

namespace {

template <class Rows>
std::optional<TenantId> tenant_in(const Rows& rows, const typename Rows::key_type& id) {
  auto at = rows.find(id);
  if (at == rows.end()) return std::nullopt;
  return at->second.tenant;
}

template <class Rows>
std::vector<typename Rows::mapped_type> page_of(const Rows& rows, const TenantId& tenant,
                                                const typename Rows::key_type& after, int limit) {
  std::vector<typename Rows::mapped_type> page;
  for (auto at = rows.upper_bound(after); at != rows.end() && static_cast<int>(page.size()) < limit; ++at)
    if (!foreign(tenant, at->second.tenant)) page.push_back(at->second);
  return page;
}

template <class Rows>
Result<typename Rows::mapped_type> shown(const Rows& rows, const typename Rows::key_type& id, const TenantId& tenant,
                                         std::string_view what, std::string_view field) {
  auto at = rows.find(id);
  if (at == rows.end() || foreign(tenant, at->second.tenant)) return no_such(what, field);
  return at->second;
}

// The row as it is put: one that was there keeps when it was made.
template <class Rows>
typename Rows::mapped_type put(Rows& rows, typename Rows::mapped_type row, WallTime clock) {
  auto at = rows.find(row.id);
  row.updated_at = clock;
  row.created_at = at == rows.end() ? clock : at->second.created_at;
  return rows[row.id] = row;
}

std::optional<TenantId> tenant_of_camera(const FakeRows& rows, const CameraId& id) {
  auto at = rows.cameras.find(id);
  if (at == rows.cameras.end()) return std::nullopt;
  return at->second.config.tenant;
}

}  // namespace

// ---- models ----

Async<ModelRecord> FakeCatalog::put_model(ModelRecord model, Put how) {
  CO_TRY(free, may_put(tenant_in(rows_.models, model.id), model.tenant, how, "model", "model_id"));
  if (!rows_.tenants.contains(model.tenant)) co_return no_such("tenant", "tenant_id");
  if (model.id == 0) {
    CO_TRY(next, next_model_id(rows_.models.empty() ? 0 : rows_.models.rbegin()->first));
    model.id = next;
  }
  if (how == Put::replace) model.file = rows_.models[model.id].file;
  co_return put(rows_.models, model, clock_());
}
Async<std::vector<ModelRecord>> FakeCatalog::list_models(TenantId tenant, ModelId after, int limit) {
  co_return page_of(rows_.models, tenant, after, limit);
}
Async<ModelRecord> FakeCatalog::show_model(ModelId id, TenantId tenant) {
  co_return shown(rows_.models, id, tenant, "model", "model_id");
}
Async<ModelRecord> FakeCatalog::set_model_file(ModelId id, TenantId tenant, ModelFile file) {
  CO_TRY(model, shown(rows_.models, id, tenant, "model", "model_id"));
  model.file = std::move(file);
  co_return put(rows_.models, model, clock_());
}
Async<Nothing> FakeCatalog::remove_model(ModelId id, TenantId tenant) {
  CO_TRY(present, shown(rows_.models, id, tenant, "model", "model_id"));
  for (const auto& [playlist_id, playlist] : rows_.playlists)
    if (playlist.model == id) co_return in_use("model", "playlist " + playlist_id.str());
  for (const auto& [identifier, subscription] : rows_.subscriptions)
    if (subscription.model == id) co_return in_use("model", "subscription " + identifier.str());
  rows_.models.erase(id);
  co_return ok();
}

// ---- playlists ----

Async<PlaylistRecord> FakeCatalog::put_playlist(PlaylistRecord playlist, Put how) {
  auto present = tenant_in(rows_.playlists, playlist.id);
  CO_TRY(free, may_put(present, playlist.tenant, how, "playlist", "playlist_id"));
  if (!rows_.tenants.contains(playlist.tenant)) co_return no_such("tenant", "tenant_id");
  if (tenant_in(rows_.models, playlist.model) != playlist.tenant) co_return no_such("model", "model_id");
  co_return put(rows_.playlists, playlist, clock_());
}
Async<std::vector<PlaylistRecord>> FakeCatalog::list_playlists(TenantId tenant, PlaylistId after, int limit) {
  co_return page_of(rows_.playlists, tenant, after, limit);
}
Async<PlaylistRecord> FakeCatalog::show_playlist(PlaylistId id, TenantId tenant) {
  co_return shown(rows_.playlists, id, tenant, "playlist", "playlist_id");
}
Async<Nothing> FakeCatalog::remove_playlist(PlaylistId id, TenantId tenant) {
  CO_TRY(present, shown(rows_.playlists, id, tenant, "playlist", "playlist_id"));
  for (const auto& [display_id, display] : rows_.displays)
    if (display.playlist == id) co_return in_use("playlist", "display " + display_id.str());
  rows_.playlists.erase(id);
  co_return ok();
}

// ---- displays ----

Async<DisplayRecord> FakeCatalog::put_display(DisplayRecord display, Put how) {
  auto present = tenant_in(rows_.displays, display.id);
  CO_TRY(free, may_put(present, display.tenant, how, "display", "display_id"));
  if (!rows_.tenants.contains(display.tenant)) co_return no_such("tenant", "tenant_id");
  if (!display.camera.empty() && tenant_of_camera(rows_, display.camera) != display.tenant)
    co_return no_such("camera", "camera_uuid");
  if (!display.playlist.empty() && tenant_in(rows_.playlists, display.playlist) != display.tenant)
    co_return no_such("playlist", "playlist_id");
  co_return put(rows_.displays, display, clock_());
}
Async<std::vector<DisplayRecord>> FakeCatalog::list_displays(TenantId tenant, DisplayId after, int limit) {
  co_return page_of(rows_.displays, tenant, after, limit);
}
Async<DisplayRecord> FakeCatalog::show_display(DisplayId id, TenantId tenant) {
  co_return shown(rows_.displays, id, tenant, "display", "display_id");
}
Async<Nothing> FakeCatalog::remove_display(DisplayId id, TenantId tenant) {
  CO_TRY(present, shown(rows_.displays, id, tenant, "display", "display_id"));
  rows_.displays.erase(id);
  co_return ok();
}

// ---- subscriptions ----

Async<SubscriptionRecord> FakeCatalog::put_subscription(SubscriptionRecord subscription) {
  auto present = tenant_in(rows_.subscriptions, subscription.id);
  if (present && present != subscription.tenant)
    co_return exists_already("subscription", "subscription_identifier");
  if (tenant_of_camera(rows_, subscription.camera) != subscription.tenant)
    co_return no_such("camera", "camera_uuid");
  if (tenant_in(rows_.models, subscription.model) != subscription.tenant) co_return no_such("model", "model_id");
  subscription.created_at = clock_();
  co_return rows_.subscriptions[subscription.id] = subscription;
}
Async<std::vector<SubscriptionRecord>> FakeCatalog::list_subscriptions(TenantId tenant, SubscriptionId after,
                                                                       int limit) {
  co_return page_of(rows_.subscriptions, tenant, after, limit);
}
Async<SubscriptionRecord> FakeCatalog::remove_subscription(SubscriptionId id, TenantId tenant) {
  CO_TRY(present, shown(rows_.subscriptions, id, tenant, "subscription", "subscription_identifier"));
  rows_.subscriptions.erase(id);
  co_return present;
}

// ---- all together ----

Async<std::vector<DesiredSubscription>> FakeCatalog::list_desired(ClusterId cluster, TenantId tenant,
                                                                  SubscriptionId after, int limit) {
  std::map<SubscriptionId, DesiredSubscription> all;
  auto add = [&](SubscriptionId id, bool ad_hoc, const CameraId& camera, ModelId model, SubscriptionOptions options,
                 WallTime created_at) {
    const camera::Config& config = rows_.cameras.at(camera).config;
    if (config.served_by() != cluster || foreign(tenant, config.tenant)) return;
    all[id] = {id, ad_hoc, config, rows_.models.at(model), completed(std::move(options), config), created_at,
               rows_.leases.at(camera).version};
  };
  for (const auto& [id, display] : rows_.displays)
    if (!display.camera.empty() && !display.playlist.empty())
      add(SubscriptionId::trusted(id.str() + ";" + display.camera.str()), false, display.camera,
          rows_.playlists.at(display.playlist).model, {}, display.created_at);
  for (const auto& [id, subscription] : rows_.subscriptions)
    add(id, true, subscription.camera, subscription.model, subscription.options, subscription.created_at);
  std::vector<DesiredSubscription> page;
  for (auto at = all.upper_bound(after); at != all.end() && static_cast<int>(page.size()) < limit; ++at)
    page.push_back(at->second);
  co_return page;
}

}  // namespace weir::test
