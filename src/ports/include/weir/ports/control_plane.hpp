// ControlPlane: the control plane as a runner asks it.
//
// An error of class `unavailable` or `unauthorized` means that nothing is known; only a typed answer says anything about
// a lease (rule 4). Implementations know several addresses and try the next one after a failure. Loop thread only.
#pragma once

#include "weir/base/secret.hpp"
#include "weir/ports/catalog.hpp"
#include "weir/ports/lease_store.hpp"
#include "weir/ports/pictures.hpp"

namespace weir {

struct RunnerFlags {
  bool cordoned = false;
  DrainMode drain = DrainMode::none;
  int capacity = 0;
  std::optional<int> spare = {};  // cameras that other runners have room for; told to those who drain
};

struct Registration {
  RunnerFlags flags;
  Secret will;  // what this boot's last will is signed with
};

// A camera as a runner sees it.
struct DesiredCamera {
  camera::Config config;
  std::string version;  // of the configuration
  int crashes = 0;      // workers that this configuration has crashed
};

struct DesiredCameras {
  std::vector<DesiredCamera> readable;
  std::set<CameraId> unreadable = {};  // there too, in words of another version
};

struct DesiredFilter {
  TenantId tenant = {};
  SiteId site = {};
};

// Who has a camera.
struct Holding {
  CameraId camera;
  RunnerId runner;
  lease::Version version;
};

struct LentToken {
  Secret token;
  Duration life{};
};

class ControlPlane {
 public:
  template <class T>
  using Async = boost::asio::awaitable<Result<T>>;
  virtual ~ControlPlane() = default;

  virtual Async<Registration> register_runner(Runner runner) = 0;
  virtual Async<RunnerFlags> heartbeat(RunnerId runner, boost::json::object body) = 0;
  // All enabled cameras that leases are for.
  virtual Async<DesiredCameras> desired(DesiredFilter filter) = 0;
  // All leases that are held, everybody's.
  virtual Async<std::vector<Holding>> held() = 0;
  // Everybody's, held or not: who has or had each camera (`owner`, `version`, `grant`, `previous`, `released`), and
  // whether it is there to be had (`assignable`).
  virtual Async<std::vector<lease::LeaseRow>> leases() = 0;
  virtual Async<std::vector<lease::Answer>> apply(lease::Batch batch) = 0;
  virtual Async<BudgetAnswer> consume(SiteId site, BudgetUse use) = 0;
  // The tokens that are there.
  virtual Async<double> budget(SiteId site) = 0;
  // For this boot's workers.
  virtual Async<LentToken> worker_token(BootId boot) = 0;
  // For the runner's own events and what it listens to.
  virtual Async<Secret> runner_token() = 0;
  virtual Async<Nothing> report_crash(CameraId camera, lease::Owner by) = 0;
  // The picture that somebody asked this runner for.
  virtual Async<Nothing> send_picture(CameraId camera, RunnerId by, SnapshotPicture picture) = 0;
};

}  // namespace weir
