// Catalog: tenants, sites, cameras and runners: what should be, and who could do it.
//
// Tenant-scoped callers pass their tenant; an empty one means all. An id that another tenant has answers `conflict`
// without detail on creation and `not_found` otherwise. A runner of no tenant serves all: every tenant may see it, and
// none may command it. Loop thread only.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/bucket/bucket.hpp"
#include "weir/camera/config.hpp"
#include "weir/ports/model_labels.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/object.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace weir {

struct Tenant {
  TenantId id;
  std::string name;
  WallTime created_at{};
};

struct Site {
  SiteId id;
  TenantId tenant;
  std::string name;
  bucket::Bucket budget;
  WallTime created_at{};
};

struct CameraRecord {
  camera::Config config;
  WallTime created_at{};
  WallTime updated_at{};
  WallTime configured_at{};  // when anything but `enabled` was last changed: names the configuration
  int crashes = 0;           // of workers, caused by this camera under its present configuration (rule 15)
};
// The record after an edit at `at`. What was counted against the old configuration is not counted against a new one;
// switching a camera off and on leaves both as they are.
CameraRecord edited(const CameraRecord& present, camera::Config next, WallTime at);

// A store keeps a configuration as text. A number may read back a last digit apart from what was written, so what is
// judged and answered is what the text will be read as.
struct KeptConfig {
  std::string text;
  camera::Config config;
};
// `invalid` where the text could not be read again.
Result<KeptConfig> keep(const camera::Config& config);
// A row that an older, a newer or no Weir has written may hold anything: `kBadStoredConfig` then, with what is wrong.
inline constexpr std::string_view kBadStoredConfig = "bad_stored_config";
Result<camera::Config> read_kept(std::string_view text);
// Lists leave such a camera out, so that it hides no other; the log names it once a process. Any thread.
void note_left_out(const CameraId& camera, const Error& why);

struct CameraFilter {
  TenantId tenant = {};
  SiteId site = {};
  std::optional<bool> enabled = {};
  CameraId after = {};
  int limit = 100;
};

enum class DrainMode { none, soft, hard };
inline constexpr std::array<json::EnumName<DrainMode>, 3> kDrainModeNames = {
    {{DrainMode::none, "none"}, {DrainMode::soft, "soft"}, {DrainMode::hard, "hard"}}};
constexpr auto& enum_names(DrainMode) { return kDrainModeNames; }
DrainMode drain_mode(std::string_view stored);

struct Runner {
  RunnerId id;
  TenantId tenant = {};   // empty: serves all
  SiteId site = {};
  std::string deployment_group = {};
  std::string deployment_version = {};
  std::string host = {};
  int port = 0;
  int metrics_port = 0;
  int capacity = 40;
  int said_capacity = 0;         // by itself, when it registered last
  bool capacity_pinned = false;  // `capacity` is what an operator said, and stays so
  std::vector<std::string> capabilities = {};
  std::vector<ModelLabels> models = {};  // on its machine when it registered
  bool cordoned = false;
  DrainMode drain = DrainMode::none;
  BootId boot = {};                 // of the last registration
  boost::json::object heartbeat = {};
  int streams_owned = 0;            // as the runner said in its last heartbeat
  int leases_held = 0;              // as the store knows; filled on reading
  bool live = false;                // heartbeat is recent; filled on reading
  WallTime registered_at{};
  WallTime last_heartbeat{};
};

struct RunnerChange {
  std::optional<bool> cordoned = {};
  std::optional<DrainMode> drain = {};
  std::optional<int> capacity = {};  // pins it
  bool unpin = false;                // what the runner said of itself counts again
};

// The descriptive part of a runner, which stores keep as one JSON document.
boost::json::object write_about(const Runner& runner);
void read_about(const boost::json::value& about, Runner& runner);
// The runner after an operator's change of it.
Runner changed(Runner runner, const RunnerChange& change);
// A runner that registers again is under the orders that an operator gave to its earlier self.
void keep_orders(const Runner& before, Runner& again);
// An id stays its tenant's. Only a caller without a tenant binds a runner of no tenant to one, or frees one that is bound.
Status may_register_again(const Runner& before, const Runner& again, const TenantId& caller);
// The runner that a caller saw, if the caller may command it: what it sees and is not its tenant's belongs to all.
Result<Runner> commanded(Result<Runner> seen, const TenantId& caller);

// Errors that every store says in the same words.
Error no_such(std::string_view what, std::string_view field);     // "camera" → camera_not_found
Error exists_already(std::string_view what, std::string_view field);
Error not_empty(std::string_view what, std::string_view because);

// What an operator wants of a runner now.
struct RunnerOrders {
  bool cordoned = false;
  DrainMode drain = DrainMode::none;
  int capacity = 0;
  friend bool operator==(const RunnerOrders&, const RunnerOrders&) = default;
};

class Catalog {
 public:
  template <class T>
  using Async = boost::asio::awaitable<Result<T>>;
  virtual ~Catalog() = default;

  // The store answers.
  virtual Async<Nothing> ping() = 0;

  virtual Async<Tenant> add_tenant(Tenant tenant) = 0;
  virtual Async<std::vector<Tenant>> list_tenants(TenantId only, TenantId after, int limit) = 0;
  virtual Async<Nothing> remove_tenant(TenantId id) = 0;  // only an empty one

  virtual Async<Site> add_site(Site site) = 0;
  virtual Async<std::vector<Site>> list_sites(TenantId tenant, SiteId after, int limit) = 0;
  virtual Async<Site> show_site(SiteId id, TenantId tenant) = 0;
  virtual Async<int> count_cameras(SiteId id, TenantId tenant) = 0;    // those of the site that are enabled
  virtual Async<Nothing> remove_site(SiteId id, TenantId tenant) = 0;  // only an empty one
  // Capacity and rate; tokens when given, else the present ones, cut to the new capacity.
  virtual Async<Site> set_budget(SiteId id, TenantId tenant, double capacity, double refill_per_min,
                                 std::optional<double> tokens) = 0;

  // A new camera gets a lease row; a camera that becomes disabled, deleted or cluster-processed loses its lease.
  virtual Async<CameraRecord> add_camera(camera::Config config) = 0;
  virtual Async<std::vector<CameraRecord>> list_cameras(CameraFilter filter) = 0;
  virtual Async<CameraRecord> show_camera(CameraId id, TenantId tenant) = 0;
  // Replaces the configuration with what `change` makes of the present one, in one step.
  using CameraEdit = std::function<Result<camera::Config>(const CameraRecord&)>;
  virtual Async<CameraRecord> edit_camera(CameraId id, TenantId tenant, CameraEdit change) = 0;
  virtual Async<Nothing> remove_camera(CameraId id, TenantId tenant) = 0;
  // One more crash under the present configuration; how many there are now.
  virtual Async<int> count_crash(CameraId id, TenantId tenant) = 0;

  // Registers or registers again; flags set by an operator survive. `will_sha256` is kept with the boot, `tenant` is the
  // caller's.
  virtual Async<Runner> register_runner(Runner runner, std::string will_sha256, TenantId tenant = {}) = 0;
  virtual Async<RunnerOrders> heartbeat(RunnerId id, TenantId tenant, boost::json::object body,
                                        int streams_owned) = 0;
  virtual Async<std::vector<Runner>> list_runners(TenantId tenant, RunnerId after, int limit) = 0;
  virtual Async<Runner> show_runner(RunnerId id, TenantId tenant) = 0;
  virtual Async<Runner> change_runner(RunnerId id, TenantId tenant, RunnerChange change) = 0;
  virtual Async<Nothing> remove_runner(RunnerId id, TenantId tenant) = 0;  // only one that holds nothing
};

}  // namespace weir
