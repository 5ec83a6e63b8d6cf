// What an orchestrator serves over HTTP: MediaMTX's hooks, the streams as people read and order them, health and metrics.
//
// A hook is answered as soon as its body was read; what follows from it happens afterwards, under the answer's
// correlation id in the log. Hooks need the hook token where one is set. The routes under /v1/streams need a token
// signed with the key, as a control plane's do. Loop thread only.
#pragma once

#include "weir/net/router.hpp"
#include "weir/net/token.hpp"
#include "weir/orchestrator/orchestrator.hpp"
#include "weir/orchestrator/own_records.hpp"

namespace weir::orchestrator {

struct EndpointSettings {
  Secret hook_token = {};             // empty: hooks need none
  std::optional<net::TokenKey> key;   // none: nobody may read or order streams here
  Streams* records = nullptr;         // the orchestrator's own; none where a control plane keeps them
  lease::Home home = {};              // of streams that nobody has named
};

class Endpoints {
 public:
  Endpoints(Orchestrator& orchestrator, net::Metrics& metrics, Clock& clock, EndpointSettings settings);
  void add_to(net::Router& router);

 private:
  using Answer = boost::asio::awaitable<net::Response>;
  Answer hook(net::Request& request, bool ready);
  Answer list(net::Request& request);
  Answer show(net::Request& request);
  Answer wish(net::Request& request);
  Answer remove(net::Request& request);
  Answer order(net::Request& request, std::string what);
  Status may_hook(const net::Request& request) const;
  Result<net::Claims> admit(const net::Request& request, bool writes) const;
  void count(bool ready, std::string_view outcome);
  boost::json::array discovered(const std::string& host) const;

  Orchestrator& orchestrator_;
  net::Metrics& metrics_;
  Clock& clock_;
  const EndpointSettings settings_;
  OwnRecords records_;
};

}  // namespace weir::orchestrator
