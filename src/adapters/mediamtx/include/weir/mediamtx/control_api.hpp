// ControlApi: the port MediaServer over MediaMTX's control API; tests run it with MediaMTX 1.13.1 and 1.21.0.
//
// Newer versions of MediaMTX give several fields other names; both generations are read. User and password may stand in
// the URL, "http://user:password@127.0.0.1:9997"; they are sent as basic authentication and appear in no error.
// Loop thread only.
#pragma once

#include "weir/net/client.hpp"
#include "weir/ports/media_server.hpp"

namespace weir::mediamtx {

struct Config {
  Secret url;
  Duration answer_within = 3s;         // one request: a page, a path, a kick
  Duration list_within = 10s;          // all pages together
  size_t answer_bytes_max = 16 << 20;  // a page holds 100 paths with all their readers
  std::string ca_file = {};            // authorities besides the system's, for https
};

class ControlApi final : public MediaServer {
 public:
  static Result<std::unique_ptr<ControlApi>> create(boost::asio::io_context& io, const Config& config);

  Async<std::vector<MediaPath>> list(std::function<bool(std::string_view)> wanted) override;
  Async<std::optional<MediaPath>> find(std::string name) override;
  Async<Nothing> kick(MediaClient client) override;

 private:
  ControlApi(net::HttpClient client, Secret authorization, Duration answer_within, Duration list_within);
  Async<net::ClientResponse> ask(net::Method method, std::string target, Duration within);

  net::HttpClient client_;
  const Secret authorization_;  // the header's value; empty where the URL names no user
  const Duration answer_within_, list_within_;
};

}  // namespace weir::mediamtx
