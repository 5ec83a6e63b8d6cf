// WorkerProcesses: the manager's worker processes: started, looked at, told, and seen to their end. Loop thread only.
#pragma once

#include "manager_shell.hpp"

namespace weir::runner {

// One worker as its manager knows it.
struct WorkerProcess {
  WorkerNumber number = 0;
  std::string shard;            // "shard-0"
  std::string crash_file;
  std::unique_ptr<WorkerLink> link = {};
  bool ready = false;
  json::value page = nullptr;   // what it said for people when somebody last asked
  bool page_asked = false;      // and has not answered yet
  Instant heard{};              // when it last answered a look, or became ready
  int bus_told = 0;             // the change of the bus's address or token that it knows
  bool killed = false;
  bool ended = false;

  int pid() const { return link ? link->pid() : 0; }
  void kill();
};
using WorkerPtr = std::shared_ptr<WorkerProcess>;

class WorkerProcesses {
 public:
  explicit WorkerProcesses(Shell& shell);

  boost::asio::awaitable<void> run(StartWorker order);
  boost::asio::awaitable<void> tell(Tell message);
  void kill(const KillWorker& order);
  // Asks every worker for its page for people; one that has not answered within a moment keeps its last page.
  boost::asio::awaitable<void> read_pages();
  // Where and by which token the workers publish from now on; an empty argument changes nothing. Each worker is told
  // again until it has confirmed: a worker that does not know spools all its events.
  void use_bus(std::string url, Secret token);
  const std::string& bus_url() const { return bus_url_; }
  bool have_token() const { return !bus_token_.empty(); }

  const std::map<WorkerNumber, WorkerPtr>& all() const { return all_; }
  WorkerPtr find(WorkerNumber number) const;
  // Which worker answers for each shard. Green has the same shard name as blue while it stands by, and publishes
  // nothing yet: blue answers under that name until its last camera has moved.
  std::map<std::string, WorkerPtr> speaking(const Summary& now) const;

 private:
  boost::asio::awaitable<Status> bring_up(WorkerPtr worker, StartWorker order);
  boost::asio::awaitable<void> watch(WorkerPtr worker);
  boost::asio::awaitable<void> read_page(WorkerPtr worker);
  boost::asio::awaitable<void> tell_the_bus(WorkerPtr worker);
  link::ShardConfig shard_of(const WorkerProcess& worker, const StartWorker& order) const;
  link::Message message_of(const Tell& tell) const;

  Shell& shell_;
  const Secret control_token_;
  std::map<WorkerNumber, WorkerPtr> all_;
  std::string bus_url_;
  Secret bus_token_;
  int bus_changes_ = 0;  // of either
};

}  // namespace weir::runner
