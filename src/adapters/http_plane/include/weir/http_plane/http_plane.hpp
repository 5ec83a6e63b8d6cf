// HttpPlane: the control plane over its HTTP API.
//
// Its token comes from what it was given, in this order: the key that signs tokens (where runner and control plane share
// a machine), an API key, or a token that is exchanged for a fresh one while it is valid. A token that was refused is
// exchanged before it is used again; where that is refused too, the file that the first one came from is read again.
// An answer that cannot be read, or that says nothing, makes the next address the one that is asked (rule 4).
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
  std::string token_file = {};  // where that came from: read again when it is of no more use
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
  Async<DesiredCameras> desired(DesiredFilter filter) override;
  Async<std::vector<Holding>> held() override;
  Async<std::vector<lease::LeaseRow>> leases() override;
  Async<std::vector<lease::Answer>> apply(lease::Batch batch) override;
  Async<BudgetAnswer> consume(SiteId site, BudgetUse use) override;
  Async<double> budget(SiteId site) override;
  Async<LentToken> worker_token(BootId boot) override;
  Async<Secret> runner_token() override;
  Async<Nothing> report_crash(CameraId camera, lease::Owner by) override;
  Async<Nothing> send_picture(CameraId camera, RunnerId by, SnapshotPicture picture) override;

 private:
  HttpPlane(Clock& clock, Config config, net::HttpClient client, net::HttpClient picture_client);
  struct Bought {
    Secret token = {};
    WallTime renew_at{}, expires{};
  };
  using Read = std::function<Status(boost::json::value&)>;  // an answer, which is an object
  enum class Refusals { none, some, all };                    // which of them say nothing

  Async<Bought> buy(Secret with, boost::json::object body);
  Async<Bought> buy_own();
  bool own_is_alive() const { return !own_.token.empty() && clock_.wall() < own_.expires; }
  void refused(const Secret& token);
  bool read_token_file();
  void explain_refusal(bool file_read, const Error& why);
  Async<boost::json::array> list(std::string first);
  void explain_unreadable(const std::string& camera, const Error& why);
  Async<Nothing> ask(net::Method method, std::string target, std::string body, Duration patience, Read read,
                     bool replayable = true, Refusals unknown = Refusals::some);
  Async<Nothing> send(net::ClientRequest request, Read read, Refusals unknown = Refusals::some);

  Clock& clock_;
  Config config_;
  net::HttpClient client_;
  net::HttpClient picture_client_;  // an upload that is slow or fails must not cost the leases their connection
  Bought own_;
  int rounds_refused_ = 0;   // since a token was bought
  std::map<std::string, std::string> unreadable_;   // what was said about which camera
};

}  // namespace weir::http_plane
