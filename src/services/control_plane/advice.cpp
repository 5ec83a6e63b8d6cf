#include "advice.hpp"

#include "weir/camera/advice.hpp"

namespace weir::control_plane {

namespace {
constexpr int kRunnersAtOnce = 1000;

camera::Facts facts_of(const Plane& plane, const camera::Config& config) {
  return {plane.streams.size_of(config.camera), plane.models.labels_for(config)};
}

json::array written(const std::vector<camera::Warning>& warnings) {
  json::array out;
  for (const camera::Warning& each : warnings)
    out.push_back(json::object{{"code", each.code}, {"field", each.field}, {"message", each.message}});
  return out;
}
}  // namespace

bool is_advised(const Caller& caller) { return caller.role != net::Role::runner; }

boost::asio::awaitable<Status> learn_models(Plane& plane) {
  if (!plane.models.must_ask(plane.clock.now())) co_return ok();
  std::vector<Runner> all;
  for (;;) {
    TenantId everybody;
    RunnerId after = all.empty() ? RunnerId() : all.back().id;
    auto page = co_await plane.runners.list_runners(std::move(everybody), std::move(after), kRunnersAtOnce);
    if (!page) {
      plane.models.ask_again();
      co_return std::move(page).error();
    }
    all.insert(all.end(), page->begin(), page->end());
    if (static_cast<int>(page->size()) < kRunnersAtOnce) break;
  }
  plane.models.learn(all);
  co_return ok();
}

json::array warnings_on(const Plane& plane, const camera::Config& config) {
  return written(camera::advise(config, facts_of(plane, config)));
}

json::array warnings_on(const Plane& plane, const camera::Config& config, const camera::Zone& zone) {
  return written(camera::advise_on(zone, config, facts_of(plane, config)));
}

}  // namespace weir::control_plane
