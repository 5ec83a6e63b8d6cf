// HttpPlane: the control plane over its HTTP API.
//
// Its token comes from what it was given, in this order: the key that signs tokens (where runner and control plane share
// a machine), an API key, or a token that is exchanged for a fresh one while it is valid. A token that was refused is not
// used again.
// Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/net/client.hpp"
#include "weir/net/token.hpp"
#include "weir/ports/control_plane.hpp"

namespace weir::http_plane {

struct Config {
  std::string url;  // or several, with commas between
  RunnerId runner;
  std::optional<net::TokenKey> key = {};
  Secret api_key = {};
  Secret token = {};
  Duration attempt = 1s;   // a lease question
  Duration patience = 5s;  // everything else
  std::string ca_file = {};  // authorities besides the system's, for https
};

class HttpPlane final : public ControlPlane {
 public:
  static Result<std::unique_ptr<HttpPlane>> create(boost::asio::io_context& io, Clock& clock, Config config);

  // Another address or key, from the next question on.
  Status use(const std::string& url, Secret api_key);

  Async<Registration> register_runner(Runner runner) override;
  Async<RunnerFlags> heartbeat(RunnerId runner, boost::json::object body) override;
  Async<std::vector<DesiredCamera>> desired(DesiredFilter filter) override;
  Async<std::vector<lease::Answer>> apply(lease::Batch batch) override;
  Async<BudgetAnswer> consume(SiteId site, BudgetUse use) override;
  Async<LentToken> worker_token(BootId boot) override;
  Async<Secret> runner_token() override;
  Async<Nothing> report_crash(CameraId camera, lease::Owner by) override;

 private:
  HttpPlane(Clock& clock, Config config, net::HttpClient client);
  struct Bought {
    Secret token = {};
    WallTime renew_at{}, expires{};
  };
  Async<Bought> buy(Secret with, boost::json::object body);
  Async<boost::json::value> ask(net::Method method, std::string target, std::string body, Duration patience,
                                bool replayable = true);
  Async<boost::json::value> send(net::ClientRequest request);

  Clock& clock_;
  Config config_;
  net::HttpClient client_;
  Bought own_;
};

}  // namespace weir::http_plane
