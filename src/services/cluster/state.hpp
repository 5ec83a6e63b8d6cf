// State: what people and programs read of a cluster at one of its processes: at the master from what it knows, at any
// other process from the tables.
//
// A large cluster's state is some megabytes of JSON, so its long lists are written as text at once, and what was read of
// the tables is kept for a moment. Loop thread only.
#pragma once

#include "crew.hpp"
#include "roster.hpp"

#include "weir/cluster/master.hpp"

namespace weir::cluster {

// `head` with the members workers, totalWorkers, slaves, totalSlaves, assignments and subscriptions, as text.
std::string master_state_text(json::object head, const Master& master, const Roster& roster, const std::string& process);

// The tables as a process that is not the master reads them.
class TableView {
 public:
  TableView(Coordination& on, Clock& clock, Crew& crew) : on_(on), clock_(clock), crew_(crew) {}

  // The same members as the master's. Where nothing could be read, empty lists; the reason is logged.
  Async<std::string> state_text(json::object head);
  // The workers, by their addresses without credentials, that have a subscription of this camera.
  Async<std::vector<std::string>> workers_of(std::string camera);

 private:
  struct Row {
    std::string text;  // as it was read
    std::string worker, status, reason;
  };
  Async<Nothing> fresh(Duration usable);
  Async<Nothing> read();
  boost::asio::awaitable<void> read_besides();
  void keep(SharedTable actual);

  Coordination& on_;
  Clock& clock_;
  Crew& crew_;
  std::map<std::string, Row> rows_;                 // by subscription
  std::string workers_ = "[]";                      // the member's text
  size_t workers_count_ = 0;
  json::array slaves_;
  SharedTable assignments_;
  std::optional<Instant> read_at_;
  bool reading_ = false;
};

}  // namespace weir::cluster
