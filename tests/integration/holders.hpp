// Fleet: lease holders in the test's own process, driven by the real holder code over real HTTP and in real time.
//
// A runner is one owner: a runner_id and a boot of its own. It wants its cameras, gathers what they ask at one moment
// into a batch, gives an attempt one second, and goes to the next control plane after a failure. The Witness writes
// down what was answered and knows the promises of docs/lease-protocol.md:
//
//   - a camera's versions never fall: an answer is at least what anybody had been told before it was asked for;
//   - a version of a camera is given to one owner only;
//   - at any moment at most one owner believes in its right. A killed runner goes on believing until its deadline,
//     because its workers would.
//
// Nothing moves by itself: everything happens on the thread that calls `until`, `run_until` or `during`.
#pragma once

#include "weir_process.hpp"

#include "weir/base/clock.hpp"
#include "weir/lease/holder.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace weir::test {

// A positive answer, as its holder took it.
struct Yes {
  CameraId camera;
  lease::Owner owner;
  lease::Outcome outcome;
  lease::Version version, grant;
  Instant asked_at, answered_at, valid_until;
};

class Witness {
 public:
  // The store is about to lose commits: a holder that is told "held by another" may see that row's older version.
  void expect_forgetting() { forgetting_ = true; }
  // `told` is the highest version that anybody had heard of when the question was sent.
  void answered(const lease::Owner& owner, const lease::Answer& answer, lease::Version told);
  void spoke(Yes yes);
  void stopped(const lease::Owner& owner, const CameraId& camera);

  lease::Version highest(const CameraId& camera) const;
  // The owner of the last grant that was heard of.
  lease::Owner owner(const CameraId& camera) const;
  int losses(const CameraId& camera) const;
  int takeovers() const { return static_cast<int>(takeovers_.size()); }
  // Each takeover as a sentence.
  std::string takeovers_told() const;
  const std::vector<Yes>& answers() const { return answers_; }
  // When the last question with a positive answer for this camera was asked.
  Instant last_asked(const CameraId& camera) const;
  std::vector<Yes> grants_of(const CameraId& camera) const;
  // Each broken promise as a sentence; empty is what a test expects.
  std::string broken() const;

 private:
  struct Camera {
    lease::Version highest{};
    lease::Owner owner;
    std::map<lease::Version, lease::Owner> given;
    std::map<lease::Owner, Instant> believes_until;
    Instant last_asked{};
    int losses = 0;
  };
  void complain(std::string what);

  std::map<CameraId, Camera> cameras_;
  std::vector<Yes> answers_;
  std::vector<std::string> broken_;
  std::vector<std::string> takeovers_;
  bool forgetting_ = false;
};

struct RunnerPlan {
  std::string name;
  std::vector<std::string> cameras;
  size_t first_plane = 0;  // whom it asks first
  lease::HolderPolicy policy = {};
};

class Fleet {
 public:
  // The runners may ask any of `planes`, which share one auth secret and outlive the fleet.
  explicit Fleet(std::vector<const WeirProcess*> planes);
  ~Fleet();
  Fleet(const Fleet&) = delete;

  // The index of the new runner.
  size_t add(RunnerPlan plan);
  // The runner falls silent for ever, as if it were killed.
  void kill(size_t runner);
  void want(size_t runner, const std::string& camera);
  // As before the start of a worker: the next renewal must bring a version that nobody was given.
  void rotate(size_t runner, const std::string& camera);

  bool until(Duration limit, const std::function<bool()>& condition);
  void run_until(Instant moment);
  // Runs `action`, which may block, on a thread of its own while the holders go on.
  void during(const std::function<void()>& action);

  const Witness& seen() const { return witness_; }
  Witness& witness() { return witness_; }
  lease::Owner owner(size_t runner) const;
  // Whether this runner has the right to publish for the camera now.
  bool believes(size_t runner, const std::string& camera) const;
  bool believes_all(size_t runner) const;
  int open_questions() const;
  int refused() const { return refused_; }  // answers with another status than 200
  int unreachable() const { return unreachable_; }

 private:
  class Runner;
  void turn();

  int refused_ = 0;
  int unreachable_ = 0;
  int living_ = 0;  // coroutines that have not ended
  bool ending_ = false;
  Witness witness_;
  const std::vector<const WeirProcess*> planes_;
  boost::asio::io_context io_;
  std::vector<std::unique_ptr<Runner>> runners_;
};

// "cam-<from>" … "cam-<to>"
std::vector<std::string> camera_names(int from, int to);

// `runners` with `each` cameras of their own, asking the planes in turn. The fleet's first has cam-1 and so on.
void add_holders(Fleet& fleet, int runners, int each, size_t planes = 1, const lease::HolderPolicy& policy = {});
// One more runner, which tries four times a second to get these cameras.
size_t add_rival(Fleet& fleet, const std::string& name, std::vector<std::string> cameras, size_t first_plane = 0);
// Every holder that `add_holders` made has all of its cameras; false if that is not so within `limit`.
bool all_held(Fleet& fleet, int runners, Duration limit = 30s);
// Every camera has had a yes to a question that was asked at or after `since`.
bool all_asked_since(const Fleet& fleet, int cameras, Instant since);
// Every camera is asked for twice more from now on, with a yes each time; false if that is not so within `limit`.
bool all_renewed(Fleet& fleet, int runners, int each, Duration limit = 30s);

// Who holds what, as the control plane tells: "owner boot version" of each camera.
std::map<std::string, std::string> holdings(const WeirProcess& plane);

// The seed of a test with random moments: $WEIR_TEST_SEED, or a new one. It is printed, so that it can be given again.
unsigned test_seed();

}  // namespace weir::test
