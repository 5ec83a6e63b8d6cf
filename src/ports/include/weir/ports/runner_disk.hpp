// RunnerDisk: what a runner keeps on its machine beyond the life of a process: its workers' crash records and spools,
// and the list of cameras.
//
// A disk may hang, and a renewal must not wait for it: what may block is awaited, or is done later. Loop thread only.
#pragma once

#include "weir/ports/spool.hpp"

#include <boost/asio/awaitable.hpp>

namespace weir {

class RunnerDisk {
 public:
  virtual ~RunnerDisk() = default;
  // The camera whose thread crashed the worker that had this crash file; empty where the disk does not answer soon
  // enough. Reading the record removes it.
  virtual boost::asio::awaitable<CameraId> culprit(std::string crash_file) = 0;
  // Replaces the list of cameras as a whole; false: the last one is still being written, and this one is not kept.
  virtual bool keep_cameras(std::string list) = 0;
  // "" where there is none. Blocks; for a runner that waits for its control plane anyway.
  virtual std::string kept_cameras() = 0;
  // What its workers have spooled, living and dead.
  virtual boost::asio::awaitable<std::vector<SpoolContent>> spools() = 0;
  // Drops a spool and answers how many events it held; drops nothing where a worker still writes there.
  virtual boost::asio::awaitable<std::uint64_t> drop(SpoolContent left) = 0;
};

}  // namespace weir
