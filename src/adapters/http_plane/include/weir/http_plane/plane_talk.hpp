// PlaneTalk: the conversation with a control plane over its HTTP API, which runners and orchestrators have alike.
//
// Its token comes from what it was given, in this order: the key that signs tokens (where asker and control plane share
// a machine), an API key, or a token that is exchanged for a fresh one while it is valid. A token that was refused is
// exchanged before it is used again; where that is refused too, the file that the first one came from is read again.
// After an answer that cannot be read, or that says nothing about the matter, the next address is asked.
// Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/lease/decide.hpp"
#include "weir/net/client.hpp"
#include "weir/net/token.hpp"
#include "weir/ports/control_plane.hpp"

#include <functional>
#include <memory>

namespace weir::http_plane {

struct Config {
  std::string url;  // or several, with commas between
  RunnerId runner;
  std::optional<net::TokenKey> key = {};
  Secret api_key = {};
  Secret token = {};
  std::string token_file = {};  // where the token came from: read again when the token is refused
  Duration attempt = 1s;   // a lease question
  Duration patience = 5s;  // everything else
  std::string ca_file = {};  // authorities besides the system's, for https
};

class PlaneTalk {
 public:
  using Read = std::function<Status(boost::json::value&)>;  // an answer, which is an object
  // Which refusals say nothing, so that the next address is asked.
  enum class Refusals {
    none,
    some,
    some_but_missing,  // as `some`, but a typed "there is no such thing" is an answer
    all,
  };

  static Result<std::unique_ptr<PlaneTalk>> create(boost::asio::io_context& io, Clock& clock, Config config);

  // Another address or key, from the next question on.
  Status use(const std::string& url, Secret api_key);
  const Config& config() const { return config_; }

  Async<Nothing> ask(net::Method method, std::string target, std::string body, Duration patience, Read read,
                     bool replayable = true, Refusals unknown = Refusals::some);
  // All pages of a list; `first` has a query.
  Async<boost::json::array> list(std::string first);
  Async<std::vector<lease::Answer>> apply(lease::Batch batch);

  Async<LentToken> worker_token(BootId boot);
  Async<Secret> runner_token();
  // The control plane refused this token on a connection of the caller's own.
  void refused(const Secret& token);

 private:
  PlaneTalk(Clock& clock, Config config, net::HttpClient client)
      : clock_(clock), config_(std::move(config)), client_(std::move(client)) {}
  struct Bought {
    Secret token = {};
    WallTime renew_at{}, expires{};
  };

  Async<Bought> buy(Secret with, boost::json::object body);
  Async<Bought> buy_own();
  bool own_is_alive() const { return !own_.token.empty() && clock_.wall() < own_.expires; }
  bool read_token_file();
  void explain_refusal(bool file_read, const Error& why);
  Async<Nothing> send(net::ClientRequest request, Read read, Refusals unknown = Refusals::some);

  Clock& clock_;
  Config config_;
  net::HttpClient client_;
  Bought own_;
  int rounds_refused_ = 0;  // since a token was bought
};

}  // namespace weir::http_plane
