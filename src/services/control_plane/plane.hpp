// Plane: what all routes of the control plane share, and the frame around each of them.
//
// A guarded route is answered only to the roles it names; an open one to anybody. Either returns a response or an
// error, which becomes the JSON error of docs/api.md here, in one place. Loop thread only.
#pragma once

#include "access.hpp"
#include "announcer.hpp"
#include "event_feed.hpp"
#include "instruments.hpp"
#include "key_login.hpp"
#include "metered.hpp"
#include "model_board.hpp"
#include "runner_watch.hpp"
#include "snapshots.hpp"
#include "stream_board.hpp"

#include "weir/control_plane/control_plane.hpp"
#include "weir/event/routing.hpp"
#include "weir/net/router.hpp"

#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <unordered_map>

namespace weir::control_plane {

using Reply = boost::asio::awaitable<Result<net::Response>>;

// Readiness: whether the store answers. It asks the store once at a time; a request that waits for longer than the
// limit is answered no.
class Readiness {
 public:
  Readiness(StoreHealth& store, net::Metrics& metrics, Clock& clock)
      : state_(std::make_shared<State>(store, metrics, clock)), clock_(clock) {}
  boost::asio::awaitable<Status> ask(Duration limit);

 private:
  struct State {
    State(StoreHealth& s, net::Metrics& metrics, Clock& clock) : store(s, metrics, clock) {}
    MeteredHealth store;
    std::uint64_t answers = 0;
    bool asking = false;
    Status last = ok();
    std::optional<boost::asio::steady_timer> answered = {};  // never expires; cancelled by each answer
  };
  std::shared_ptr<State> state_;  // an answer may come after everybody has stopped waiting
  Clock& clock_;
};

// CameraPlaces: where cameras stand, as the store answered a moment ago. A camera that moves is removed and added
// again.
class CameraPlaces {
 public:
  const event::Place* find(const CameraId& camera, Instant now) const;
  const event::Place* keep(event::Place place, Instant now);

 private:
  static constexpr Duration kBelieved = 10s;
  static constexpr size_t kMax = 100'000;
  struct Known {
    event::Place place;
    Instant at;
  };
  std::unordered_map<CameraId, Known> known_;
};

struct Plane {
  Plane(LeaseStore& lease_store, Catalog& catalog, EventLog& event_log, Keys& key_store, Pictures& picture_store,
        ModelDisk& disk, Clock& time, net::TokenKey key, net::Metrics& registry, ControlPlaneSettings chosen);

  MeteredLeaseStore leases;
  MeteredSites sites;
  MeteredCameras cameras;
  MeteredRunners runners;
  MeteredStreams published;
  MeteredModels cluster_models;
  MeteredDisplays displays;
  MeteredEventLog events;
  MeteredKeys keys;
  Pictures& pictures;
  ModelDisk& model_disk;
  Clock& clock;
  net::Metrics& metrics;
  const ControlPlaneSettings settings;
  Gate gate;
  KeyLogins logins;
  Instruments instruments;
  Readiness readiness;
  CameraPlaces places;
  StreamBoard streams;  // of cameras
  RunnerWatch heartbeats;
  Snapshots snapshots;
  ModelBoard models;  // of runners
  EventFeed feed;
  Announcer announcer;
};

using GuardedHandler = std::function<Reply(Plane&, net::Request&, const Caller&)>;
using OpenHandler = std::function<Reply(Plane&, net::Request&)>;
void add_guarded(net::Router& router, Plane& plane, net::Method method, std::string_view pattern, Roles roles,
                 GuardedHandler handler, std::optional<net::StreamedBody> body = {});
void add_open(net::Router& router, Plane& plane, net::Method method, std::string_view pattern, OpenHandler handler);

// A site that says nothing about its budget.
Site new_site(const ControlPlaneSettings& settings, SiteId id, TenantId tenant);

void add_health_routes(net::Router& router, Plane& plane);
void add_lease_routes(net::Router& router, Plane& plane);
void add_site_routes(net::Router& router, Plane& plane);
void add_camera_routes(net::Router& router, Plane& plane);
void add_stream_routes(net::Router& router, Plane& plane);
void add_snapshot_routes(net::Router& router, Plane& plane);
void add_zone_routes(net::Router& router, Plane& plane);
void add_runner_routes(net::Router& router, Plane& plane);
void add_model_routes(net::Router& router, Plane& plane);
void add_model_file_routes(net::Router& router, Plane& plane);
void add_display_routes(net::Router& router, Plane& plane);
void add_event_routes(net::Router& router, Plane& plane);
void add_auth_routes(net::Router& router, Plane& plane);

}  // namespace weir::control_plane
