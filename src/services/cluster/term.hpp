// Term: a process of a cluster for as long as it is the master.
//
// It reads what is desired after every announced change and now and then besides, hands it to a Master, and has what the
// Master hears brought to whom it concerns: detections to Redis (Courier) and to the bus (Results), events to listeners
// (Crier), what it knows into the tables (TableKeeper). It answers what other processes ask over Redis. It decides
// nothing: each of its parts does. A term ends when the lease is lost or its right has passed. Loop thread only.
#pragma once

#include "courier.hpp"
#include "crier.hpp"
#include "feed.hpp"
#include "patches.hpp"
#include "results.hpp"
#include "roster.hpp"
#include "table_keeper.hpp"

#include "weir/cluster/backend.hpp"

namespace weir::cluster {

class Term {
 public:
  // Of the process, which outlives its terms.
  struct Process {
    boost::asio::io_context& io;
    const BackendPorts& ports;
    net::Metrics& metrics;
    const BackendSettings& settings;
    LeaseKeeper& lease;
    Feed& feed;
    std::function<bool()> may_act;
  };
  explicit Term(Process process);

  boost::asio::awaitable<void> run();  // until the right has passed, or `may_act` says no
  void look();                         // the lease has changed, or the process stops
  void rows_changed();

  const Master& master() const { return master_; }
  const Roster& roster() const { return roster_; }
  Status set_session(const SetSessionId& session);
  Status answer_patch(const PatchSessionResult& result);

 private:
  // A term that has ended stays so, also where the lease turns out to be this process's still.
  bool goes_on() const { return !over_ && process_.may_act(); }
  Voice voice();
  const std::string& shown(const std::string& worker) const { return shown_.at(worker); }
  void saw(const std::string& worker, const ImageDetection& detection);
  void patched(const std::string& worker, const PatchSession& patch);
  void told(const std::string& worker, const Tell& tell);
  void happened(std::string event, json::object payload);
  void tell_here(const Saying& what);
  void moved_on();
  void heard(const Heard& heard);
  void answer(const std::string& slave, std::int64_t request, const Status& done);
  boost::asio::awaitable<void> respond(CommandResponse response);
  boost::asio::awaitable<void> refresh();
  void take_rows(std::vector<ClusterWish> rows);
  boost::asio::awaitable<void> end_late_patches();
  bool somebody_listens() const { return process_.feed.listeners() > 0 || roster_.somebody_listens(); }

  const Process process_;
  const std::string id_;
  std::map<std::string, std::string> shown_;   // workers' addresses without credentials
  std::map<std::string, ClusterWish> wishes_;  // by subscription
  Crew crew_;
  Alarm changed_, look_soon_, patches_alarm_;
  Pen pen_;
  Roster roster_;
  Master master_;
  Courier courier_;
  Crier crier_;
  TableKeeper tables_;
  Results results_;
  Patches patches_;
  bool rows_changed_ = false, over_ = false;
};

}  // namespace weir::cluster
