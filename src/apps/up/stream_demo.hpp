// StreamDemo: a published stream beside the simulated cameras of `weir up --demo`, where a MediaMTX is there.
//
// MediaMTX reads a simulated camera as live/demo/in, and a `weir orchestrator` makes live/demo/out of it, with what is
// detected drawn into the pictures. Both are kept processes (kept_host.hpp): if this program dies, their keepers end them
// and everything below them within seconds. Where one of them ends by itself, it is started again. Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/base/secret.hpp"
#include "weir/posix/keeper_host.hpp"

#include <functional>

namespace weir::apps {

struct StreamDemoSetup {
  std::string mediamtx;       // the program
  std::string folder;         // of its own, in the state folder
  std::string control_plane;  // the address
  std::string secret_file;    // the key of tokens
  std::vector<std::pair<std::string, std::string>> environment = {};  // settings for the stream worker
};

class StreamDemo {
 public:
  using Say = std::function<void(const std::string& line)>;  // to the person at the terminal
  StreamDemo(boost::asio::io_context& io, Clock& clock, StreamDemoSetup setup, Say say)
      : io_(io), clock_(clock), setup_(std::move(setup)), say_(std::move(say)) {}

  // Begins to show what `camera` sends; returns at once.
  Status start(const Secret& camera);
  // Ends both processes, and returns when they have ended.
  boost::asio::awaitable<void> stop();

 private:
  struct Ports {
    int rtsp = 0, hls = 0, api = 0, hooks = 0;
  };
  KeptSpec mediamtx_spec() const;
  KeptSpec orchestrator_spec() const;
  boost::asio::awaitable<void> keep(KeptSpec spec);
  boost::asio::awaitable<void> tell_when_shown();

  boost::asio::io_context& io_;
  Clock& clock_;
  const StreamDemoSetup setup_;
  const Say say_;
  Ports ports_;
  std::unique_ptr<posix::KeeperHost> host_;
  int kept_ = 0;  // processes that are being kept
  bool stopping_ = false;
};

}  // namespace weir::apps
