// RunnerFleet: a control plane, simulated cameras, and real `weir runner`s with all their processes.
//
// A Runner's processes are found by its state folder, which stands in the command line of parent, manager and workers
// alike, so that none is forgotten, whichever process is its parent by now. All processes end with the test, stopped
// ones too. Main thread only.
#pragma once

#include "history.hpp"
#include "shard.hpp"
#include "where.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace weir::test {

// Every process whose command line holds this word.
std::vector<int> processes_with(const std::string& word);
// Gone, or only waiting to be reaped.
bool ended(int pid);
void signal_all(const std::vector<int>& pids, int number);
// Crashes the camera's thread in this worker, as foreign code does when it meets a stream that it cannot bear. The
// threads of cameras have their names.
bool crash_thread(int pid, const std::string& camera);
// One request, without a token, to the process that answers there.
Reply get_from(const std::string& url, const std::string& target);

class Runner {
 public:
  // `flags` come after --runner-id and --state-dir.
  Runner(std::string program, std::string id, std::string folder, std::vector<std::string> flags,
         std::string api_key = {});
  ~Runner();
  Runner(const Runner&) = delete;

  // Again in the same folder; fails the test where it does not come up.
  void start();
  const std::string& id() const { return id_; }
  const std::string& folder() const { return folder_; }

  int parent() const { return parent_; }
  int manager() const;
  std::vector<int> workers() const;  // the idle one included
  std::vector<int> processes() const { return processes_with(folder_); }
  int worker_of(const std::string& camera) const;

  // The runner's report about itself; empty where it does not answer.
  boost::json::object state() const;
  // The same where the runner must answer, for a test that looks only once: on a busy machine it may take more than
  // one request.
  boost::json::object told() const;
  boost::json::object camera(const std::string& camera) const;
  double number(const std::string& camera, std::string_view field) const;
  bool streams(const std::string& camera) const;
  Reply get(const std::string& target) const { return get_from(url_, target); }
  const std::string& url() const { return url_; }
  std::string log() const;
  bool logged(std::string_view word) const { return log().find(word) != std::string::npos; }
  // Its first worker, the idle one where it has no camera, is there to be used.
  bool has_worker_up() const { return logged("\"event\":\"worker.spawned\""); }

  void kill_everything();  // at once: nobody is left to send the last will
  // The parent's exit code, 128 + signal, or -1 when it did not end within `limit`.
  int wait(Duration limit);

 private:
  const std::string program_, id_, folder_, api_key_;
  const std::vector<std::string> flags_;
  std::string url_;
  int parent_ = -1;
};

struct FleetOptions {
  int cameras = 2;
  std::string profile = "fps=10,keyframe_s=1,seconds=20";
  boost::json::object camera = {};  // fields of every camera
  std::vector<std::string> plane_flags = {};
  std::vector<std::string> runner_flags = {"--lease-ttl-s", "3", "--lease-renew-interval-s", "1"};
  double refill_per_min = 6000;  // of the site's dials
  int capacity = 1000;
  bool postgres = false;              // a new database on the shared server
  std::string database = {};          // instead: this one
  boost::json::array recorders = {};  // instead of one recorder with `cameras` cameras
  std::string runner_program = WEIR_BINARY;
};

class RunnerFleet {
 public:
  explicit RunnerFleet(FleetOptions options);

  WeirProcess& plane() { return *plane_; }
  Camsim& camsim() { return *camsim_; }
  // `url` where it is not the control plane's own, `folder` where it is not its id's.
  Runner& add(const std::string& id, std::vector<std::string> more = {}, std::string url = {});
  std::unique_ptr<Runner> make(const std::string& id, const std::string& folder, std::vector<std::string> more = {},
                               std::string url = {}, std::string api_key = {}) const;
  Runner& runner(const std::string& id) { return *runners_.at(id); }
  const std::vector<std::string>& cameras() const { return cameras_; }
  // At tenant t1 and site s1, unless `more` names others.
  void register_camera(const std::string& camera, boost::json::object more = {});

  History& history() { return history_; }
  // The runner that holds the camera's lease, and its version.
  std::string owner_of(const std::string& camera);
  std::int64_t version_of(const std::string& camera);
  std::map<std::string, std::int64_t> versions();
  // Every camera streams at one of these runners, which holds its lease; all of the fleet where none are given.
  bool all_stream(Duration limit, std::vector<std::string> at = {});
  std::string report();  // for a failing test
  const TempDir& folder() const { return folder_; }

 private:
  boost::json::array leases(bool held);

  FleetOptions options_;
  TempDir folder_;
  std::unique_ptr<Camsim> camsim_;
  std::unique_ptr<WeirProcess> plane_;
  std::vector<std::string> cameras_;
  std::map<std::string, std::unique_ptr<Runner>> runners_;
  History history_;
};

// For faults whose length is the point; the test goes on when it has lasted so long.
void let_last(Duration time);

// Why tests of a fleet cannot run here, or "".
std::string fleet_needs();

// A test of a fleet, on the store that its parameter names.
class FleetTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override;
  static bool postgres() { return GetParam() == std::string("Postgres"); }
  std::unique_ptr<RunnerFleet> fleet_;
};
std::string store_name(const ::testing::TestParamInfo<const char*>& store);

}  // namespace weir::test
