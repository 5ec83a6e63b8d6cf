// Shard: real simulated cameras, a real worker on them, and a test that plays their manager.
//
// The manager registers its cameras with a control plane, takes their leases over HTTP, hands them to its workers with
// absolute deadlines, and renews when it is asked to. Events are read back from the control plane's own bus.
// Main thread only.
#pragma once

#include "child.hpp"
#include "part.hpp"

#include <map>

namespace weir::test {

class Camsim {
 public:
  // `recorders` as in the simulator's configuration.
  Camsim(const TempDir& folder, boost::json::array recorders);
  // One recorder with one camera for each profile: cam-1, cam-2 …
  Camsim(const TempDir& folder, const std::vector<std::string>& profiles);

  std::string url(const std::string& camera) const;
  void fault(const std::string& camera, boost::json::object fault) const;
  void recorder_fault(const std::string& recorder, boost::json::object fault) const;
  boost::json::value dials() const { return child_.get("/v1/dials").body; }
  boost::json::object about(const std::string& camera) const;
  Child& child() { return child_; }

 private:
  Child child_;
};

// A worker that a test started; the control token is the test's.
class WorkerProcess {
 public:
  WorkerProcess(const TempDir& folder, const std::string& name, boost::json::object config,
                std::vector<std::string> more = {});
  Reply get(const std::string& target) const { return child_.get(target, token_); }
  Reply post(const std::string& target, const boost::json::value& body) const {
    return child_.post(target, body, token_);
  }
  boost::json::object state() const;
  // The camera's part of /state; empty where the worker has no such camera.
  boost::json::object camera(const std::string& id) const;
  std::string state_of(const std::string& id) const;
  double number(const std::string& id, std::string_view field) const;
  std::string metrics() const { return child_.get("/metrics").text; }
  // A sample of the metrics, by its name with labels; -1 where there is none.
  double metric(const std::string& sample) const;
  Child& child() { return child_; }
  const Secret& token() const { return token_; }

 private:
  const Secret token_;
  Child child_;
};

// A manager by hand: one runner and boot.
class Manager {
 public:
  Manager(WeirProcess& plane, std::string runner);

  struct Held {
    std::int64_t version = 0, grant = 0;
    Instant valid_until{};
    boost::json::value previous = nullptr;
  };
  // Takes or renews; false where somebody else has the camera.
  bool acquire(const std::string& camera, double ttl_s = 60);
  bool renew(const std::string& camera, double ttl_s = 60, bool rotate = false);
  void release(const std::string& camera);
  // The lease as a worker reads it.
  boost::json::object lease(const std::string& camera) const;
  // A source of a shard's configuration with its lease.
  boost::json::object source(const std::string& camera, const std::string& url, boost::json::object more = {}) const;
  // A shard's configuration with these sources.
  boost::json::object config(boost::json::array sources) const;
  Secret worker_token() const;
  const Held& held(const std::string& camera) const { return held_.at(camera); }
  const std::string& runner() const { return runner_; }
  const std::string& boot() const { return boot_; }

 private:
  bool ask(const std::string& what, boost::json::object item, const std::string& camera, double ttl_s);
  WeirProcess& plane_;
  const std::string runner_, boot_;
  int keys_ = 0;
  std::map<std::string, Held> held_;
};

// Every event of the bus so far, oldest first, as {"routing_key","topic","payload"}.
std::vector<boost::json::object> events_of(const WeirProcess& plane, const std::string& pattern = "%23");

}  // namespace weir::test
