// ModelDisk: where the files of detector clusters' models lie, each under the SHA-256 of what it holds.
//
// A file is there as a whole or not at all. Several control planes may use one disk at once. A disk may hang, and a
// renewal must not wait for it: whatever may block is awaited. Loop thread only.
#pragma once

#include "weir/ports/async.hpp"

#include <cstdint>
#include <memory>
#include <set>
#include <string>

namespace weir {

class ModelDisk {
 public:
  // A file that comes piece by piece. Where it ends before it was kept, nothing of it remains.
  class Incoming {
   public:
    virtual ~Incoming() = default;
    virtual Async<Nothing> write(std::string piece) = 0;
    // Answers the checksum in lower-case hex once the file survives a loss of power. Fails with "wrong_checksum" where
    // another one was `expected`; "" expects none. Called once, and last.
    virtual Async<std::string> keep(std::string expected) = 0;
  };
  // A file that is read piece by piece, whole even if it is removed meanwhile.
  class Outgoing {
   public:
    virtual ~Outgoing() = default;
    virtual std::uint64_t bytes() const = 0;
    virtual Async<std::string> read_some() = 0;  // "" at the end
  };

  virtual ~ModelDisk() = default;
  virtual Async<std::unique_ptr<Incoming>> receive() = 0;
  virtual Async<std::unique_ptr<Outgoing>> open(std::string sha256) = 0;
  // Removes what is not `named` and has lain here for long enough that no upload can still be about to name it, and
  // what uploads left behind that were killed. Answers how many files it removed.
  virtual Async<int> remove_unnamed(std::set<std::string> named) = 0;
};

}  // namespace weir
