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
  // Base URLs. The jobs of orchestrators and clusters, which are comments in the shipped file, are used where there are any.
  struct Watched {
    std::vector<std::string> runners = {}, planes = {}, orchestrators = {}, clusters = {};
    std::string ca_file = {};  // of control planes that speak TLS
  };
  explicit Prometheus(const Watched& watched);
  Prometheus(const std::vector<std::string>& runners, const std::vector<std::string>& planes,
             const std::string& ca_file = "")
      : Prometheus(Watched{.runners = runners, .planes = planes, .ca_file = ca_file}) {}
  ~Prometheus();
  Prometheus(const Prometheus&) = delete;

  // "data" of what /api/v1/<target> answers; null where it does not.
  boost::json::value ask(const std::string& target) const;
  // The series that a query without special characters finds, each with "metric" and "value".
  boost::json::array query(const std::string& text) const;
  boost::json::array alerts() const;
  // The names of the alerts that fire now; those that `labels` (e.g. runner_id r1) belongs to.
  std::set<std::string> firing(const std::map<std::string, std::string>& labels = {}) const;
  // Each of these fires within the limit, with words that were filled in; `meanwhile` keeps the fault up.
  testing::AssertionResult fires(const std::set<std::string>& wanted, Duration limit,
                                 const std::function<void()>& meanwhile = [] {}) const;
  // The names of those that the shipped file has in these groups ("runners" for weir-runners).
  static std::set<std::string> rules(const std::set<std::string>& groups);
  // What a program's metrics page has and tools/metrics.py does not know, "" where that is nothing: dashboards and alerts
  // are checked against what it knows. `ca_file` is the authority behind a page over TLS.
  static std::string unknown_on(const std::string& page, const std::string& ca_file = "");
  std::string log() const;

 private:
  TempDir folder_;
  const int port_;
  int pid_ = -1;
};

}  // namespace weir::test
