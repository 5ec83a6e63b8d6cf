#include "demo.hpp"

#include "weir/base/log.hpp"
#include "weir/posix/child_process.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <csignal>

namespace weir::apps {

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;

namespace {

// Encoding the footage takes a while the first time; afterwards it lies in the cache.
constexpr Duration kReadyLimit = 120s;
const TenantId kTenant = TenantId::trusted("demo");
const SiteId kSite = SiteId::trusted("demo");

Error not_ready(std::string message) { return {Errc::unavailable, "demo", "simulated cameras: " + std::move(message)}; }

Status unless_there(Status made) {
  if (!made && made.error().code != Errc::conflict) return made.error();
  return ok();
}
template <class T>
Status without_value(Result<T> made) {
  if (!made) return made.error();
  return ok();
}

}  // namespace

asio::awaitable<Status> Demo::put_camera(const std::string& name, const std::string& url) {
  camera::Config config;
  config.camera = CameraId::trusted("demo-" + name.substr(name.find('-') + 1));
  config.tenant = kTenant;
  config.site = kSite;
  config.name = "Simulated camera " + name;
  config.rtsp_url = Secret(url);
  auto added = co_await catalog_.add_camera(config);
  cameras_.push_back(config.camera);
  if (added || added.error().code != Errc::conflict) co_return without_value(std::move(added));
  Catalog::CameraEdit edit = [url](const CameraRecord& record) -> Result<camera::Config> {
    camera::Config changed = record.config;
    changed.rtsp_url = Secret(url);
    return changed;
  };
  co_return without_value(co_await catalog_.edit_camera(config.camera, kTenant, edit));
}

asio::awaitable<Status> Demo::start(int cameras, const std::string& footage) {
  std::vector<std::string> arguments{"--cameras", std::to_string(cameras), "--footage", footage, "--listen",
                                     "127.0.0.1:0", "--control", "127.0.0.1:0", "--exit-with-stdin",
                                     "--profile", "stamp=false"};  // a picture as a camera would show it
  Program program{.path = posix::helper_path("camsim"), .arguments = std::move(arguments)};
  CO_TRY(child, host_.start(program));
  camsim_ = std::move(child);
  auto answer = co_await (camsim_->read_line() || clock_.wait(kReadyLimit));
  if (answer.index() == 1) co_return not_ready("they did not get ready in time");
  CO_TRY(line, std::get<0>(std::move(answer)));
  CO_TRY(ready, json::parse_text(line));
  Tenant tenant{.id = kTenant, .name = "Demo"};
  CO_TRY(tenant_there, unless_there(without_value(co_await catalog_.add_tenant(tenant))));
  Site site{.id = kSite, .tenant = kTenant, .name = "Simulated cameras"};
  site.budget.capacity = site.budget.tokens = cameras;
  site.budget.refill_per_min = 60;
  CO_TRY(site_there, unless_there(without_value(co_await catalog_.add_site(site))));
  const json::value* list = ready.is_object() ? ready.get_object().if_contains("cameras") : nullptr;
  if (list == nullptr || !list->is_array()) co_return not_ready("they did not name their addresses");
  for (const json::value& each : list->get_array()) {
    const auto& camera = each.as_object();
    CO_TRY(put, co_await put_camera(std::string(camera.at("name").as_string()),
                                    std::string(camera.at("url").as_string())));
  }
  log::info("demo.started", "simulated cameras run").with("cameras", cameras).with("pid", camsim_->pid());
  co_return ok();
}

asio::awaitable<void> Demo::stop() {
  for (const CameraId& camera : std::exchange(cameras_, {}))
    if (auto removed = co_await catalog_.remove_camera(camera, kTenant); !removed)
      log::warn("demo.left_behind", removed.error().message).with("camera_uuid", camera);
  if (!camsim_) co_return;
  camsim_->signal(SIGTERM);
  co_await (camsim_->wait() || clock_.wait(3s));
  if (camsim_->running()) camsim_->signal(SIGKILL);
}

}  // namespace weir::apps
