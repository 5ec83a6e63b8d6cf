// RedisServer: a private Redis for tests: its own folder, a free port on loopback, gone with the test, however that
// ends.
//
// Debian's package redis-tools holds the server too: the program decides by the name that it is started under. Main
// thread only.
#pragma once

#include "temp_files.hpp"

#include "weir/base/secret.hpp"

#include <memory>

namespace weir::test {

class RedisServer {
 public:
  // The reason `no_redis` where no server is installed.
  static Result<std::unique_ptr<RedisServer>> start(Secret password = {});
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;

  int port() const { return port_; }
  // Forgets everything; it answers on the same port again afterwards.
  Status restart_empty();
  void freeze() const;
  void thaw() const;
  // SIGKILL.
  void kill();

 private:
  RedisServer(std::string program, Secret password);
  Status run();

  const std::string program_;
  const Secret password_;
  TempDir folder_;
  const int port_;
  int pid_ = -1;
};

}  // namespace weir::test
