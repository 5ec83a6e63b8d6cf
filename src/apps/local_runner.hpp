// LocalRunner: keeps one worker on every camera of `weir up`.
//
// It stands in the control plane's own process and asks the store directly: it takes the lease of every camera that can
// be assigned, then the site's token, then has the worker dial; renews with the lease protocol's holder; hands absolute
// deadlines to the worker; adds, changes and removes cameras live; starts a worker again that died, under versions that
// nobody was given before. `run` until `stop` has completed. Loop thread only.
#pragma once

#include "child_process.hpp"

#include "weir/lease/holder.hpp"
#include "weir/net/client.hpp"
#include "weir/net/token.hpp"
#include "weir/ports/catalog.hpp"
#include "weir/ports/lease_store.hpp"

#include <map>
#include <set>

namespace weir::apps {

struct LocalRunnerSettings {
  std::string control_plane;                  // where the worker publishes
  std::vector<std::string> worker_arguments;  // settings that it shares with this process
  lease::HolderPolicy policy = {};
  Duration grace = 15s;
};

class LocalRunner {
 public:
  LocalRunner(boost::asio::io_context& io, Clock& clock, LeaseStore& leases, Catalog& catalog, net::TokenKey key,
              LocalRunnerSettings settings);
  boost::asio::awaitable<void> run();
  boost::asio::awaitable<void> stop();
  // What the worker said last about its cameras; null before the first answer.
  const json::value& state() const { return state_; }

 private:
  struct Camera {
    lease::HolderState holder;
    CameraRecord record;
    std::optional<lease::Speak> speak = {};
    bool fresh = false;            // this version was not handed to a worker yet
    bool token = false;            // the site's token for this grant was taken
    Instant token_retry{};
    std::string sent = {};         // the configuration that the worker has; "" where it has none
    Instant told_until{};          // the deadline that the worker knows
  };

  boost::asio::awaitable<Status> start_worker();
  boost::asio::awaitable<void> look_at_catalog();
  boost::asio::awaitable<void> ask_store();
  void perform(Camera& camera, const std::vector<lease::HolderAction>& actions);
  void feed(Camera& camera, const lease::HolderEvent& event);
  boost::asio::awaitable<void> tell_worker();
  boost::asio::awaitable<bool> may_dial(Camera& camera);
  boost::asio::awaitable<bool> post(std::string path, json::object body);
  boost::asio::awaitable<void> look_at_worker();
  void worker_died(int code);
  void forget_handover(Camera& camera);
  Secret bus_token() const;

  boost::asio::io_context& io_;
  Clock& clock_;
  LeaseStore& leases_;
  Catalog& catalog_;
  const net::TokenKey key_;
  const LocalRunnerSettings settings_;
  const lease::Owner owner_;
  const Secret control_token_;
  std::map<CameraId, Camera> cameras_;
  std::vector<lease::Question> questions_;
  std::set<CameraId> lost_;
  std::optional<ChildProcess> worker_;
  std::optional<net::HttpClient> control_;
  json::value state_ = nullptr;
  Instant next_catalog_{}, next_token_{}, restart_at_{};
  int restarts_ = 0;
  bool stopping_ = false, ended_ = false;
};

}  // namespace weir::apps
