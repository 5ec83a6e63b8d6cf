// TableKeeper: keeps the tables of a cluster as its master sees it: connections every two seconds, and what is desired
// and what is actual as soon as it changes.
//
// Only differences are written, a bounded number at a time; everything is written anew after the epoch was opened,
// after Redis was away, and after a write that failed. Nothing that it writes holds a credential. Loop thread only.
#pragma once

#include "pen.hpp"

#include "weir/cluster/master.hpp"
#include "weir/cluster/records.hpp"

namespace weir::cluster {

// A worker's connection as it stands in the table, and in what people read.
WorkerConnectionState connection_state(const Master& master, const std::string& worker, const std::string& process,
                                       std::vector<std::string> subscriptions);
// The subscriptions that each worker has.
std::map<std::string, std::vector<std::string>> subscriptions_by_worker(const placement::World& world);

class TableKeeper {
 public:
  TableKeeper(boost::asio::io_context& io, Pen& pen, const Master& master, Clock& clock, std::string process)
      : pen_(pen), master_(master), clock_(clock), process_(std::move(process)), alarm_(io, clock) {}

  boost::asio::awaitable<void> run();  // until `stop`
  // What is desired, or what is actual, has changed.
  void changed() {
    changed_ = true;
    alarm_.ring();
  }
  void go_on() { alarm_.ring(); }
  void stop() {
    stopping_ = true;
    alarm_.ring();
  }

 private:
  boost::asio::awaitable<bool> write(TableChange change);
  boost::asio::awaitable<bool> write_all(bool anew);
  TableChange connections(bool anew) const;
  TableChange desired(bool anew);
  TableChange actual(bool anew);

  Pen& pen_;
  const Master& master_;
  Clock& clock_;
  const std::string process_;
  Alarm alarm_;
  std::uint64_t written_under_ = 0;  // the pen's `opened`
  std::map<std::string, std::uint64_t> desired_;                 // as written: revisions
  std::map<std::string, placement::Assignment> actual_;          // as written
  Instant connections_due_{};
  bool changed_ = true, stopping_ = false;
};

}  // namespace weir::cluster
