#include "weir/runner/endpoints.hpp"

#include "weir/net/addressee.hpp"

namespace weir::runner {

namespace asio = boost::asio;
using net::Method;

namespace {

constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

// Prometheus asks under the host name that it was configured with, and gets targets under the same name. It names the
// runner that it means on each visit (`__param_runner_id` becomes ?runner_id=), because another one may answer at
// this address one day.
json::array discovered(const Manager& manager, const std::string& host) {
  json::array out;
  auto target = [&](std::string path, json::object labels) {
    labels["__metrics_path__"] = std::move(path);
    labels["__param_runner_id"] = labels["runner_id"] = manager.id().str();
    out.push_back(json::object{{"targets", json::array{json::value(host)}}, {"labels", std::move(labels)}});
  };
  target("/metrics", {{"job", "weir-runner"}});
  for (const std::string& shard : manager.shards())
    target(fmt::format("/workers/{}/metrics", shard), {{"job", "weir-worker"}, {"shard_id", shard}});
  return out;
}

}  // namespace

void add_endpoints(net::Router& router, Manager& manager, net::Metrics& metrics) {
  using Answer = asio::awaitable<net::Response>;
  // For pages that Prometheus reads: a request that names another runner is refused.
  auto add_own = [&](std::string_view path, std::function<Answer(net::Request&)> answer) {
    router.add(Method::get, path, [&manager, answer = std::move(answer)](net::Request& request) -> Answer {
      if (auto meant = net::meant_for(request, manager.id().str()); !meant)
        co_return net::Response::failure(meant.error());
      co_return co_await answer(request);
    });
  };
  router.add(Method::get, "/healthz", [](net::Request&) -> Answer {
    co_return net::Response::json(json::object{{"status", "ok"}});
  });
  router.add(Method::get, "/readyz", [&manager](net::Request&) -> Answer {
    bool ready = manager.registered();
    json::object body{{"ready", ready}};
    if (!ready) body["reason"] = "the control plane has not answered yet";
    co_return net::Response::json(body, ready ? 200 : 503);
  });
  add_own("/metrics", [&metrics](net::Request&) -> Answer {
    co_return net::Response::text(metrics.text(), 200, kMetricsType);
  });
  router.add(Method::get, "/state", [&manager](net::Request&) -> Answer {
    co_return net::Response::json(co_await manager.state());
  });
  add_own("/sd/prometheus", [&manager](net::Request& request) -> Answer {
    co_return net::Response::text(json::to_text(discovered(manager, std::string(request.header("host")))), 200,
                                  "application/json");
  });
  add_own("/workers/{shard}/metrics", [&manager](net::Request& request) -> Answer {
    auto answer = co_await manager.worker_page(request.param("shard"), "/metrics");
    if (!answer) co_return net::Response::failure(answer.error());
    co_return net::Response::text(std::move(answer->body), answer->status, kMetricsType);
  });
}

}  // namespace weir::runner
