// HttpWorkers: workers as processes of this machine that answer over HTTP on loopback.
//
// The shard document goes to the process as a file without a name, so that no other user can read the secrets in it;
// the worker's first line on standard output names its address. A worker that has no route for the look is of protocol
// 0: its page for people is read instead. Loop thread only.
#pragma once

#include "weir/ports/process_host.hpp"
#include "weir/ports/worker_link.hpp"

#include <boost/asio/io_context.hpp>

namespace weir::http_worker {

struct Config {
  std::string program;                      // weir-worker
  std::vector<std::string> arguments = {};  // settings that are passed on
};

class HttpWorkers final : public WorkerHost {
 public:
  HttpWorkers(boost::asio::io_context& io, ProcessHost& host, Config config)
      : io_(io), host_(host), config_(std::move(config)) {}
  Result<std::unique_ptr<WorkerLink>> start(const link::ShardConfig& shard) override;

 private:
  boost::asio::io_context& io_;
  ProcessHost& host_;
  const Config config_;
};

}  // namespace weir::http_worker
