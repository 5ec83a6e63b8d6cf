// ControlPlane: the HTTP face of the store: who owns which camera, what cameras there are, who could process them.
//
// It decides nothing. A handler checks who asks, reads the request into the domain's types, makes one step of the
// store, and writes the answer as JSON; what happened is logged and counted once, beside the answer. Any number of
// control planes may stand before one store.
//
// Usage: construct, `add_routes` to a router, give `observe` to the server as its observer, and run `ticker` until it
// is cancelled. Everything it is given must outlive it, and it must outlive the router's last request and the ticker.
// Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/camera/config.hpp"
#include "weir/net/metrics.hpp"
#include "weir/net/server.hpp"
#include "weir/net/token.hpp"
#include "weir/ports/catalog.hpp"
#include "weir/ports/event_log.hpp"
#include "weir/ports/keys.hpp"
#include "weir/ports/lease_store.hpp"
#include "weir/ports/model_disk.hpp"
#include "weir/ports/pictures.hpp"

#include <memory>

namespace weir::control_plane {

struct ControlPlaneSettings {
  Duration ttl_min = 3s;  // a lease's TTL outside these bounds is refused, never bent
  Duration ttl_max = 60s;
  double budget_capacity = 10;  // of a site that says nothing about its budget
  double budget_refill_per_min = 60;
  bool create_places = true;  // an administrator's camera makes the tenant and the site that it names
  camera::Rules rules = {};
  EventRetention retention = {};
  size_t event_window_bytes = 32 << 20;  // a listener further behind than this is too slow
  Duration runner_live = 10s;  // announced to runners: who is silent for longer counts as gone
  Duration token_ttl = 15min;  // of a token whose buyer does not say
  std::uint64_t model_file_bytes_max = 4ULL << 30;
  std::string model_files_url = {};  // where workers ask for models' files; empty: where the link was asked for
  friend bool operator==(const ControlPlaneSettings&, const ControlPlaneSettings&) = default;
};

struct Plane;

class ControlPlane {
 public:
  ControlPlane(LeaseStore& leases, Catalog& catalog, EventLog& events, Keys& keys, Pictures& pictures,
               ModelDisk& model_disk, Clock& clock, net::TokenKey key, net::Metrics& metrics,
               ControlPlaneSettings settings);
  ~ControlPlane();
  ControlPlane(const ControlPlane&) = delete;

  void add_routes(net::Router& router);
  // Publishes that a camera was created, updated or deleted in the catalog without the routes.
  void announce_camera(std::string_view what, const CameraRecord& camera);
  // The server's observer: counts requests and their durations.
  void observe(const net::Finished& finished);
  // What a control plane does unasked, until the coroutine is cancelled: moves lease time on, about every
  // lease::kTickEvery, and logs once when the store goes away and once when it is back; publishes what changed, and
  // which leases ran out; deletes old events; feeds the subscribers.
  boost::asio::awaitable<void> ticker();

 private:
  std::unique_ptr<Plane> plane_;
};

}  // namespace weir::control_plane
