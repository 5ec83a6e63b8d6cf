// Statements about what detector clusters shall look at, on one session. Private to this folder; throws PgFailure.
#pragma once

#include "connection.hpp"

#include "weir/ports/displays.hpp"

namespace weir::postgres {

Result<PlaylistRecord> put_playlist(Connection& c, PlaylistRecord playlist, Put how);
std::vector<PlaylistRecord> list_playlists(Connection& c, const TenantId& tenant, const PlaylistId& after, int limit);
Result<PlaylistRecord> show_playlist(Connection& c, const PlaylistId& id, const TenantId& tenant);
Result<Nothing> remove_playlist(Connection& c, const PlaylistId& id, const TenantId& tenant);

Result<DisplayRecord> put_display(Connection& c, DisplayRecord display, Put how);
std::vector<DisplayRecord> list_displays(Connection& c, const TenantId& tenant, const DisplayId& after, int limit);
Result<DisplayRecord> show_display(Connection& c, const DisplayId& id, const TenantId& tenant);
Result<Nothing> remove_display(Connection& c, const DisplayId& id, const TenantId& tenant);

Result<SubscriptionRecord> put_subscription(Connection& c, SubscriptionRecord subscription);
std::vector<SubscriptionRecord> list_subscriptions(Connection& c, const TenantId& tenant, const SubscriptionId& after,
                                                   int limit);
Result<SubscriptionRecord> remove_subscription(Connection& c, const SubscriptionId& id, const TenantId& tenant);

std::vector<DesiredSubscription> list_desired(Connection& c, const ClusterId& cluster, const TenantId& tenant,
                                              const SubscriptionId& after, int limit);

}  // namespace weir::postgres
