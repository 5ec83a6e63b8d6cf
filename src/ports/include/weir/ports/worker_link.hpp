// WorkerLink: one worker process as its manager holds it; WorkerHost starts them.
//
// What crosses the link is the protocol of weir/link. Whatever a worker does, a call here ends: with an answer, or with
// an error when the worker said nothing in time or something that cannot be read. The one exception is `wait`, which
// lasts as long as the process. Destroying the link kills the process. Loop thread only.
#pragma once

#include "weir/link/look.hpp"
#include "weir/link/message.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>

namespace weir {

// One of the worker's pages, as it is: metrics, its state for people, a picture.
struct WorkerPage {
  int status = 0;
  std::string body;
  std::string captured_at = {};  // of a picture
};

class WorkerLink {
 public:
  template <class T>
  using Async = boost::asio::awaitable<Result<T>>;
  virtual ~WorkerLink() = default;

  virtual int pid() const = 0;
  // Returns when the worker has said that it is ready; before that only `kill` and `wait` may be called. It has no
  // time limit: a manager that waits no longer kills the worker.
  virtual Async<Nothing> ready() = 0;
  virtual Async<link::Look> look() = 0;
  virtual Async<std::vector<link::LastWord>> tell(link::Message message) = 0;
  virtual Async<WorkerPage> page(std::string path) = 0;
  // The processor time that it has used so far; one that is stopped or frozen uses none.
  virtual Duration cpu_time() const = 0;
  virtual void kill() = 0;
  // The exit code, or 128 + the signal that ended it.
  virtual boost::asio::awaitable<int> wait() = 0;
};

class WorkerHost {
 public:
  virtual ~WorkerHost() = default;
  virtual Result<std::unique_ptr<WorkerLink>> start(const link::ShardConfig& shard) = 0;
};

}  // namespace weir
