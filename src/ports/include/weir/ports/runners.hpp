// Runners: the machines that could process cameras: what each said of itself, and what an operator orders it to do.
//
// A runner registers when it starts and says by heartbeats that it lives; an operator cordons it, drains it or pins its
// capacity, and these orders survive its restarts. A runner of no tenant serves all: every tenant may see it, and none
// may command it. Tenant-scoped callers pass their tenant; an empty one means all. Loop thread only; the plain functions:
// any thread.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/json.hpp"
#include "weir/base/time.hpp"
#include "weir/ports/async.hpp"
#include "weir/ports/model_labels.hpp"
#include "weir/runner/drain_mode.hpp"

#include <boost/json/object.hpp>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

DrainMode drain_mode(std::string_view stored);

// Words that an operator tells runners apart by.
struct Deployment {
  std::string group = {};
  std::string version = {};
};

struct RunnerAddress {
  std::string host = {};
  int port = 0;
  int metrics_port = 0;
};

struct Runner {
  RunnerId id;
  TenantId tenant = {};   // empty: serves all
  SiteId site = {};
  Deployment deployment = {};
  RunnerAddress address = {};
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
  bool unpin = false;                // the capacity that the runner announced counts again
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
// The runner that a caller saw, if the caller may command it: a runner that a tenant sees and does not own serves all
// tenants.
Result<Runner> commanded(Result<Runner> seen, const TenantId& caller);

// What an operator wants of a runner now.
struct RunnerOrders {
  bool cordoned = false;
  DrainMode drain = DrainMode::none;
  int capacity = 0;
  friend bool operator==(const RunnerOrders&, const RunnerOrders&) = default;
};

class Runners {
 public:
  virtual ~Runners() = default;

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
