// Plane: what all routes of the control plane share, and the frame around each of them.
//
// A guarded route is answered only to the roles it names; an open one to anybody. Either returns a response or an
// error, which becomes the JSON error of the contracts here, in one place. Loop thread only.
#pragma once

#include "weir/control_plane/access.hpp"
#include "weir/control_plane/announcer.hpp"
#include "weir/control_plane/control_plane.hpp"
#include "weir/control_plane/event_feed.hpp"
#include "weir/control_plane/instruments.hpp"
#include "weir/control_plane/metered.hpp"
#include "weir/control_plane/model_board.hpp"
#include "weir/control_plane/snapshots.hpp"
#include "weir/event/routing.hpp"
#include "weir/lease/version.hpp"
#include "weir/net/router.hpp"

#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <set>
#include <unordered_map>

namespace weir::control_plane {

using Reply = boost::asio::awaitable<Result<net::Response>>;

// Which grants were seen already: a replayed acquire answers `granted` again, but nothing changed hands.
// Versions rise, so forgetting the lowest forgets the oldest.
class SeenGrants {
 public:
  bool first_time(lease::Version grant);

 private:
  static constexpr size_t kMax = 16384;
  std::set<std::int64_t> grants_;
};

// Is the store there? One question at a time; whoever waits for longer than the limit is told no.
class Readiness {
 public:
  Readiness(Catalog& catalog, Clock& clock) : state_(std::make_shared<State>(catalog)), clock_(clock) {}
  boost::asio::awaitable<Status> ask(Duration limit);

 private:
  struct State {
    explicit State(Catalog& c) : catalog(c) {}
    Catalog& catalog;
    std::uint64_t answers = 0;
    bool asking = false;
    Status last = ok();
    std::optional<boost::asio::steady_timer> answered = {};  // never expires; cancelled by each answer
  };
  std::shared_ptr<State> state_;  // an answer may come after everybody has stopped waiting
  Clock& clock_;
};

// Where cameras stand, as the store said a moment ago. A camera that moves is removed and added again.
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
  Plane(LeaseStore& lease_store, Catalog& catalog_store, EventLog& event_log, Keys& key_store,
        Pictures& picture_store, Clock& time, net::TokenKey key, net::Metrics& registry,
        ControlPlaneSettings chosen);

  MeteredLeaseStore leases;
  MeteredCatalog catalog;
  MeteredEventLog events;
  MeteredKeys keys;
  Pictures& pictures;
  Clock& clock;
  net::Metrics& metrics;
  const ControlPlaneSettings settings;
  Gate gate;
  Instruments instruments;
  SeenGrants seen_grants;
  Readiness readiness;
  CameraPlaces places;
  StreamBoard streams;
  Snapshots snapshots;
  ModelBoard models;
  EventFeed feed;
  Announcer announcer;
};

using GuardedHandler = std::function<Reply(Plane&, net::Request&, const Caller&)>;
using OpenHandler = std::function<Reply(Plane&, net::Request&)>;
void add_guarded(net::Router& router, Plane& plane, net::Method method, std::string_view pattern, Roles roles,
                 GuardedHandler handler);
void add_open(net::Router& router, Plane& plane, net::Method method, std::string_view pattern, OpenHandler handler);

void add_health_routes(net::Router& router, Plane& plane);
void add_lease_routes(net::Router& router, Plane& plane);
void add_site_routes(net::Router& router, Plane& plane);
void add_camera_routes(net::Router& router, Plane& plane);
void add_snapshot_routes(net::Router& router, Plane& plane);
void add_zone_routes(net::Router& router, Plane& plane);
void add_runner_routes(net::Router& router, Plane& plane);
void add_model_routes(net::Router& router, Plane& plane);
void add_event_routes(net::Router& router, Plane& plane);
void add_auth_routes(net::Router& router, Plane& plane);

}  // namespace weir::control_plane
