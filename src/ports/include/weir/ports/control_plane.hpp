// ControlPlane: the control plane as a runner asks it. (control_plane::ControlPlane is another thing: the server
// itself.)
//
// An error of class `unavailable` or `unauthorized` means that nothing is known; only a typed answer says anything
// about a lease ("Lost is only a typed answer" in docs/lease-protocol.md). Implementations know several addresses and
// try the next one after a failure. Loop thread only.
#pragma once

#include "weir/base/secret.hpp"
#include "weir/ports/cameras.hpp"
#include "weir/ports/lease_store.hpp"
#include "weir/ports/pictures.hpp"
#include "weir/ports/runners.hpp"

namespace weir {

struct RunnerFlags {
  bool cordoned = false;
  DrainMode drain = DrainMode::none;
  int capacity = 0;
  std::optional<int> spare = {};  // cameras that other runners have room for; told to those who drain
};

struct Registration {
  RunnerFlags flags;
  Secret will;  // the secret by which the runner's parent proves its right to this boot's last will
};

// A camera as a runner sees it.
struct DesiredCamera {
  camera::Config config;
  std::string version;  // of the configuration
  int crashes = 0;      // workers that this configuration has crashed
};

struct DesiredCameras {
  std::vector<DesiredCamera> readable;
  std::set<CameraId> unreadable = {};  // enabled cameras whose configuration this version of Weir cannot read
};

struct DesiredFilter {
  TenantId tenant = {};
  SiteId site = {};
};

// Which runner holds a camera.
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
  virtual ~ControlPlane() = default;

  virtual Async<Registration> register_runner(Runner runner) = 0;
  virtual Async<RunnerFlags> heartbeat(RunnerId runner, boost::json::object body) = 0;
  // All enabled cameras that are processed by leases.
  virtual Async<DesiredCameras> desired(DesiredFilter filter) = 0;
  // All leases that are held, by any runner.
  virtual Async<std::vector<Holding>> held() = 0;
  // All leases, held or not: who has or had each camera (`owner`, `version`, `grant`, `previous`, `released`), and
  // whether a runner may take it (`assignable`).
  virtual Async<std::vector<lease::LeaseRow>> leases() = 0;
  virtual Async<std::vector<lease::Answer>> apply(lease::Batch batch) = 0;
  virtual Async<BudgetAnswer> consume(SiteId site, BudgetUse use) = 0;
  // How many tokens the site's budget holds now.
  virtual Async<double> budget(SiteId site) = 0;
  // A token with which this boot's workers publish.
  virtual Async<LentToken> worker_token(BootId boot) = 0;
  // The token with which the runner publishes its own events and subscribes.
  virtual Async<Secret> runner_token() = 0;
  virtual Async<Nothing> report_crash(CameraId camera, lease::Owner by) = 0;
  // Delivers the picture that the control plane asked this runner for.
  virtual Async<Nothing> send_picture(CameraId camera, RunnerId by, SnapshotPicture picture) = 0;
};

}  // namespace weir
