// Statements about what detector clusters shall look at, within the caller's transaction where they write. Private to
// this folder; throws SqliteFailure. One thread.
#pragma once

#include "db.hpp"

#include "weir/ports/displays.hpp"

namespace weir::sqlite {

Result<PlaylistRecord> put_playlist(Db& db, WallTime clock, PlaylistRecord playlist, Put how);
std::vector<PlaylistRecord> list_playlists(Db& db, const TenantId& tenant, const PlaylistId& after, int limit);
Result<PlaylistRecord> show_playlist(Db& db, const PlaylistId& id, const TenantId& tenant);
Result<Nothing> remove_playlist(Db& db, const PlaylistId& id, const TenantId& tenant);

Result<DisplayRecord> put_display(Db& db, WallTime clock, DisplayRecord display, Put how);
std::vector<DisplayRecord> list_displays(Db& db, const TenantId& tenant, const DisplayId& after, int limit);
Result<DisplayRecord> show_display(Db& db, const DisplayId& id, const TenantId& tenant);
Result<Nothing> remove_display(Db& db, const DisplayId& id, const TenantId& tenant);

Result<SubscriptionRecord> put_subscription(Db& db, WallTime clock, SubscriptionRecord subscription);
std::vector<SubscriptionRecord> list_subscriptions(Db& db, const TenantId& tenant, const SubscriptionId& after,
                                                   int limit);
Result<SubscriptionRecord> remove_subscription(Db& db, const SubscriptionId& id, const TenantId& tenant);

std::vector<DesiredSubscription> list_desired(Db& db, const ClusterId& cluster, const TenantId& tenant,
                                              const SubscriptionId& after, int limit);

}  // namespace weir::sqlite
