// ModelStore: fetches models from the hosts that it may ask, and keeps their files under their checksums.
//
// The host is first asked what it has: a control plane tells a file's SHA-256, and what lies here already is not
// fetched again, not after a restart either. A file that comes is written piece by piece, bounded in size, and counts
// only if it has the checksum that its host told. Nothing is fetched twice at a time from one place. Redirects are never
// followed: they would lead to hosts that nobody has listed. Files of models that no subscription has are removed, but
// for the last few. Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/detector/host_list.hpp"
#include "weir/detector/models.hpp"
#include "weir/net/client.hpp"
#include "weir/ports/model_disk.hpp"

#include <deque>
#include <functional>
#include <map>
#include <set>

namespace weir::detector {

struct ModelStoreConfig {
  HostList hosts;
  std::string ca_file = {};
  std::uint64_t bytes_max = 1 << 30;  // of one file; detectors load no larger one
  size_t downloads_max = 4;           // at a time
  size_t unused_max = 8;              // files that no subscription has
};

class ModelStore final : public Models {
 public:
  // Reads what a file on the disk says about its model.
  using Inspect = std::function<Async<ModelFacts>(std::string sha256)>;
  using InUse = std::function<std::set<std::string>()>;  // the checksums of models that subscriptions have
  ModelStore(boost::asio::io_context& io, Clock& clock, ModelDisk& disk, ModelStoreConfig config, Inspect inspect,
             InUse in_use);

  Async<StoredModel> get(Secret url) override;

 private:
  struct Known {
    std::string tag;  // by which the host tells versions of the file apart
    std::string sha256;
  };
  Async<std::string> find(const WebPlace& place);
  Async<std::string> download(net::HttpClient& client, const WebPlace& place);
  Async<StoredModel> inspected(std::string sha256);
  boost::asio::awaitable<bool> has(std::string sha256);
  boost::asio::awaitable<void> tidy_up();
  void used(const std::string& sha256);

  boost::asio::io_context& io_;
  Clock& clock_;
  ModelDisk& disk_;
  const ModelStoreConfig config_;
  const Inspect inspect_;
  const InUse in_use_;
  std::set<std::string> asked_;        // places that are being asked
  std::map<std::string, Known> known_;  // by place
  std::map<std::string, ModelFacts> facts_;
  std::deque<std::string> recent_;     // the last used one first
};

}  // namespace weir::detector
