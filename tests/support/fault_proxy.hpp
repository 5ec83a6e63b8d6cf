// FaultProxy: a TCP proxy on loopback that can be told to misbehave, between a client and its server: a runner and its
// control plane, a forwarder and its destination.
//
// Faults act at once, on connections that are open and on new ones. A connection that lost bytes is reset when the
// fault ends, because what would follow makes no sense. Runs on a thread of its own; its methods may be called from any
// thread.
#pragma once

#include "weir/base/time.hpp"

#include <memory>
#include <string>

namespace weir::test {

struct Fault {
  bool cut = false;                         // connections are reset, new ones too
  std::string cut_path = {};                // only connections with a request whose path begins with this
  bool lose_up = false, lose_down = false;  // bytes towards the server, or from it, vanish: both is a black hole
  bool freeze = false;                      // nothing is read from the client any more, and nothing closed
  bool deaf = false;                        // the client's packets vanish below TCP: nothing is acknowledged any more
  size_t bytes_per_s = 0;                   // so much is read from a client at most; 0: no bound
  Duration delay{};                         // of every piece in each direction
  Duration jitter{};                        // the delay is longer or shorter by up to this much
};

class FaultProxy {
 public:
  // `url` is the server's. `receive_bytes`: what the kernel takes from a client before it is read; 0: as much as it likes.
  explicit FaultProxy(const std::string& url, int receive_bytes = 0);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;

  std::string url() const;
  int port() const;
  void set(const Fault& fault);
  void cut() { set({.cut = true}); }
  void black_hole() { set({.lose_up = true, .lose_down = true}); }
  void pass() { set({}); }

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace weir::test
