// Prometheus: a private, real one that runs the shipped configuration and alerts, faster than in production.
//
// It reads deploy/prometheus as it stands, but for the addresses, which are the test's, and the times: it visits every
// second, asks who is there every second, evaluates twice a second, and of every rule's `for` a minute lasts a second.
// Windows such as [5m] stay as they are. Loopback, a free port, its own folder; ends with its object. Main thread only.
#pragma once

#include "fleet.hpp"

#include <set>

namespace weir::test {

class Prometheus {
 public:
  // Why there is none on this machine, or "".
  static std::string needs();
  // `runners` and `planes` are base URLs.
  Prometheus(const std::vector<std::string>& runners, const std::vector<std::string>& planes);
  ~Prometheus();
  Prometheus(const Prometheus&) = delete;

  // "data" of what /api/v1/<target> answers; null where it does not.
  boost::json::value ask(const std::string& target) const;
  // The series that a query without special characters finds, each with "metric" and "value".
  boost::json::array query(const std::string& text) const;
  boost::json::array alerts() const;
  // The names of the alerts that fire now; those that `labels` (e.g. runner_id r1) belongs to.
  std::set<std::string> firing(const std::map<std::string, std::string>& labels = {}) const;
  // The names of all that the shipped file has.
  static std::set<std::string> rules();
  std::string log() const;

 private:
  TempDir folder_;
  const int port_;
  int pid_ = -1;
};

}  // namespace weir::test
