// KeptRecord: what the disk knows of a kept process, so that the next start of the orchestrator finds it.
//
// A state folder holds, for each name, the file NAME.record, and for each nonce NONCE.lock (the lock by which it is
// known to live), NONCE.sock (where its keeper listens) and, after the child's end, NONCE.exit. A record is never
// behind its keeper: it is written before the keeper hears of a new version or deadline. Only the first writing may
// wait for the disk: the kernel keeps the others when this process dies, and when the kernel dies nobody is left to be
// found.
// Blocks for as long as the disk does. Loop thread only.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/time.hpp"
#include "weir/ports/lasting_process.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::posix {

struct KeptRecord {
  std::string name;
  std::string nonce;
  BootId boot;  // whose process started it
  std::string note = {};
  std::string lease_socket = {};
  std::int64_t version = 0;
  Instant ends_at{};  // when the keeper ends the child, or, where the child knows its deadline, the child itself
  std::optional<ProcessMark> keeper = {};  // nothing until it was started
};

class KeptFolder {
 public:
  explicit KeptFolder(std::string path) : path_(std::move(path)) {}

  enum class Durable { no, yes };
  Status write(const KeptRecord& record, Durable durable) const;
  std::optional<KeptRecord> find(const std::string& name) const;
  // Every record that can be read.
  std::vector<KeptRecord> all() const;
  // The child's recorded exit code.
  std::optional<int> exit_code(const std::string& nonce) const;
  // Removes all files of the nonce, and the record of that name where it is the nonce's.
  void remove(const std::string& name, const std::string& nonce) const;
  // Removes the files of every nonce that no record has and whose lock is free.
  void sweep() const;

  const std::string& path() const { return path_; }
  std::string lock_path(const std::string& nonce) const { return path_ + "/" + nonce + ".lock"; }
  std::string socket_path(const std::string& nonce) const { return path_ + "/" + nonce + ".sock"; }

 private:
  std::string exit_path(const std::string& nonce) const { return path_ + "/" + nonce + ".exit"; }
  std::string record_path(const std::string& name) const { return path_ + "/" + name + ".record"; }
  const std::string path_;
};

}  // namespace weir::posix
