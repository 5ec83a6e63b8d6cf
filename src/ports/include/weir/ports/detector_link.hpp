// DetectorLink: how the cluster's master reaches its detection workers.
//
// A worker is named by its address ("ws://host:8000"). One connection at a time is opened to each; what is said over it
// are the texts of weir/cluster/worker_protocol.hpp. Besides, a worker is asked for single pictures, by any process of
// the cluster. Loop thread only.
#pragma once

#include "weir/ports/async.hpp"

#include <memory>
#include <optional>
#include <string>

namespace weir {

// One open connection. Dropping the object cuts it.
class WorkerSocket {
 public:
  virtual ~WorkerSocket() = default;
  // The worker's next message; nothing once the connection is over.
  virtual boost::asio::awaitable<std::optional<std::string>> receive() = 0;
  // Queues a text at once. A worker that does not take what it is sent is cut off.
  virtual Status post(std::string text) = 0;
  virtual void cut() = 0;
  // Why the connection is over, in words, and whether the worker closed it in an orderly way.
  virtual std::string reason() const = 0;
  virtual bool orderly() const = 0;
};

// The newest picture of a camera, as a JPEG.
struct WorkerPicture {
  std::string jpeg;
  std::string captured_at = {};  // as the worker says it; "" where it does not
};

class DetectorLink {
 public:
  virtual ~DetectorLink() = default;
  virtual Async<std::unique_ptr<WorkerSocket>> dial(std::string worker) = 0;
  // Within seconds, and of a bounded size. `not_found` where the worker has no picture of this camera.
  virtual Async<WorkerPicture> picture(std::string worker, std::string camera) = 0;
};

}  // namespace weir
