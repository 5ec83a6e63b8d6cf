// StreamHouse: a real MediaMTX with the hooks that Weir ships, and a real `weir orchestrator` with all its children.
//
// The orchestrator can be killed and started again in the same folder, on the same port; its children live on meanwhile,
// as they do for a user, and end with this object: they are found by the folder, which stands in their environment and
// in the command lines of their keepers. Main thread only.
#pragma once

#include "mediamtx.hpp"
#include "weir_process.hpp"
#include "where.hpp"

namespace weir::test {

struct StreamHouseOptions {
  std::string streams = {};                 // the streams file, as YAML
  std::vector<std::string> flags = {};      // of the orchestrator, in addition
  bool hooks = true;                        // else MediaMTX calls nobody
  std::string hook_script = {};             // a shell script in the place of weir-hook, which it finds as $WEIR_HOOK
  std::string hook_token_file = {};         // what MediaMTX's hooks carry
  std::string secret = {};                  // the file with the key of tokens, where it is not in the state folder
  MediaMtx::Version version = MediaMtx::Version::v1_21_0;
};

class StreamHouse {
 public:
  explicit StreamHouse(StreamHouseOptions options = {});
  ~StreamHouse();
  StreamHouse(const StreamHouse&) = delete;

  MediaMtx& hub() { return *hub_; }
  const TempDir& folder() const { return folder_; }
  std::string state_dir() const { return folder_.path() + "/o"; }
  // The flags by which any orchestrator finds this MediaMTX.
  std::vector<std::string> hub_flags() const;

  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }
  // The orchestrator's command.
  std::vector<std::string> orchestrator_words() const;

  void start();
  void kill_orchestrator();               // SIGKILL
  int stop_orchestrator(int signal);      // its exit code
  Program& orchestrator() { return *orchestrator_; }
  std::string log() const { return text_in_file(folder_.path() + "/orchestrator.log"); }

  // What the orchestrator says of the stream; empty where it does not know it or does not answer.
  boost::json::object stream(const std::string& id) const;
  std::string state(const std::string& id) const;
  std::string run(const std::string& id) const;
  Reply post(const std::string& target, const boost::json::value& body) const;
  Reply get(const std::string& target) const;
  // Every process of the orchestrator but itself: keepers and what they keep.
  std::vector<int> children() const;
  // The children's own logs, one after the other.
  std::string child_logs() const;

 private:
  Reply call(net::Method method, const std::string& target, const boost::json::value& body) const;

  const StreamHouseOptions options_;
  TempDir folder_;
  const int port_;
  std::unique_ptr<MediaMtx> hub_;
  std::unique_ptr<Program> orchestrator_;
};

// Why tests of published streams cannot run here, or "".
std::string stream_house_needs(MediaMtx::Version version = MediaMtx::Version::v1_21_0);

}  // namespace weir::test
