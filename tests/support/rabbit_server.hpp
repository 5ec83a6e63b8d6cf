// RabbitServer: a private RabbitMQ for tests: its own folder, node, name server and free ports on loopback, gone with
// the test, however that ends.
//
// It takes seconds to start, so the cases of a test program share one, and each has a virtual host of its own there, in
// which it finds nothing of the others. Main thread only.
#pragma once

#include "program.hpp"

#include "weir/base/result.hpp"

#include <gtest/gtest.h>

namespace weir::test {

class RabbitServer {
 public:
  // One broker for the whole process, started when first asked for. The error says why there is none: the reason
  // `no_rabbitmq` where no broker is installed.
  static Result<RabbitServer*> shared();
  static Result<std::unique_ptr<RabbitServer>> start();
  ~RabbitServer();
  RabbitServer(const RabbitServer&) = delete;

  // A new virtual host; its URL, with the password.
  std::string new_url();
  int port() const { return port_; }
  // TLS, with a certificate for localhost from the authority in this file.
  int tls_port() const { return tls_port_; }
  std::string ca_file() const { return folder_.path() + "/ca.pem"; }
  // What `rabbitmqctl` printed.
  std::string control(const std::string& words) const;
  // The broker takes no events while it is short of memory.
  void set_alarm(bool on) const;
  void kill();   // SIGKILL
  Status run();  // again, after `kill`
  std::string log() const;

  static constexpr const char* kPassword = "canary-of-the-broker";

 private:
  RabbitServer();
  std::string environment() const;

  TempDir folder_;
  const int port_, tls_port_, names_port_, node_port_;
  std::unique_ptr<Program> names_, node_;
  int vhosts_ = 0;
};

}  // namespace weir::test

// Ends the test if there is no RabbitMQ on this machine. One that is there and does not start is a failure.
#define SKIP_WITHOUT_RABBITMQ(made)                                            \
  if (!(made)) {                                                               \
    ASSERT_EQ((made).error().reason, "no_rabbitmq") << (made).error().message; \
    GTEST_SKIP() << (made).error().message;                                    \
  }                                                                            \
  static_assert(true)
