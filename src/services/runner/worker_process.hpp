// WorkerProcess: one worker as its manager knows it: the process, its control endpoint, what it said last. Loop thread only.
#pragma once

#include "weir/runner/manager.hpp"

#include <csignal>

namespace weir::runner {

struct Manager::WorkerProcess {
  WorkerNumber number = 0;
  std::string shard;       // "shard-0"
  std::string crash_file;
  std::unique_ptr<Child> child;
  std::optional<net::HttpClient> control = {};
  std::string url = {};
  json::value state = nullptr;
  Instant heard{};         // when it said that
  int bus_told = 0;        // the change of the bus's address or token that it knows
  bool killed = false;
  bool ended = false;

  int pid() const { return child ? child->pid() : 0; }
  void kill() {
    killed = true;
    if (child) child->signal(SIGKILL);
  }
  boost::asio::awaitable<Result<net::ClientResponse>> post(std::string path, json::object body, Secret token,
                                                           Duration timeout);
  boost::asio::awaitable<Result<net::ClientResponse>> get(std::string path, Secret token, Duration timeout);
};

}  // namespace weir::runner
