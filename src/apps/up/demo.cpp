#include "demo.hpp"

#include "weir/base/log.hpp"
#include "weir/posix/child_process.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>

namespace weir::apps {

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;

namespace {

// Encoding the footage takes a while the first time; afterwards it lies in the cache.
constexpr Duration kReadyLimit = 120s;
const TenantId kTenant = TenantId::trusted("demo");
const SiteId kSite = SiteId::trusted("demo");
constexpr std::string_view kIdStart = "demo-", kNameStart = "Simulated camera ";
constexpr int kCamerasMax = 1000;

Error not_ready(std::string message) { return {Errc::unavailable, "demo", std::move(message)}; }

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
  config.camera = CameraId::trusted(fmt::format("{}{}", kIdStart, name.substr(name.find('-') + 1)));
  config.tenant = kTenant;
  config.site = kSite;
  config.name = fmt::format("{}{}", kNameStart, name);
  config.rtsp_url = Secret(url);
  auto put = co_await catalog_.add_camera(config);
  std::string_view what = put ? "created" : "updated";
  if (!put && put.error().code != Errc::conflict) co_return put.error();
  Cameras::CameraEdit edit = [url](const CameraRecord& record) -> Result<camera::Config> {
    camera::Config changed = record.config;
    changed.rtsp_url = Secret(url);
    return changed;
  };
  if (!put) put = co_await catalog_.edit_camera(config.camera, kTenant, edit);
  if (!put) co_return put.error();
  tell_(what, *put);
  cameras_.push_back(*std::move(put));
  co_return ok();
}

asio::awaitable<Status> Demo::start(int cameras, const std::string& footage) {
  std::vector<std::string> arguments{"--cameras", std::to_string(cameras), "--footage", footage, "--listen",
                                     "127.0.0.1:0", "--control", "127.0.0.1:0", "--exit-with-stdin",
                                     "--profile", "stamp=false"};  // a picture as a camera would show it
  if (std::error_code unknown; !std::filesystem::is_regular_file(footage, unknown))
    co_return not_ready(fmt::format("there is no video at {}; name one with --footage FILE", footage));
  Program program{.path = posix::helper_path("camsim"), .arguments = std::move(arguments)};
  CO_TRY(child, host_.start(program));
  camsim_ = std::move(child);
  auto answer = co_await (camsim_->read_line() || clock_.wait(kReadyLimit));
  if (answer.index() == 1) co_return not_ready("weir-camsim did not get ready in time");
  if (!std::get<0>(answer))
    co_return not_ready(fmt::format("{0} ended before its cameras ran; it said why on standard error, which on a "
                                    "terminal goes to the log. To see it alone: {0} --cameras 1 --footage {1}",
                                    program.path, footage));
  std::string line = *std::get<0>(std::move(answer));
  CO_TRY(ready, json::parse_text(line));
  Tenant tenant{.id = kTenant, .name = "Demo"};
  CO_TRY(tenant_there, unless_there(without_value(co_await sites_.add_tenant(tenant))));
  Site site{.id = kSite, .tenant = kTenant, .name = "Simulated cameras"};
  site.budget.capacity = site.budget.tokens = cameras;
  site.budget.refill_per_min = 60;
  CO_TRY(site_there, unless_there(without_value(co_await sites_.add_site(site))));
  const json::value* list = ready.is_object() ? ready.get_object().if_contains("cameras") : nullptr;
  if (list == nullptr || !list->is_array()) co_return not_ready("weir-camsim did not name its cameras' addresses");
  for (const json::value& each : list->get_array()) {
    const auto& camera = each.as_object();
    CO_TRY(put, co_await put_camera(std::string(camera.at("name").as_string()),
                                    std::string(camera.at("url").as_string())));
  }
  log::info("demo.started", "simulated cameras run").with("cameras", cameras).with("pid", camsim_->pid());
  co_return ok();
}

asio::awaitable<void> Demo::remove(CameraRecord camera) {
  auto removed = co_await catalog_.remove_camera(camera.config.camera, kTenant);
  if (removed) tell_("deleted", camera);
  else log::warn("demo.left_behind", removed.error().message).with("camera_uuid", camera.config.camera);
}

// A person may have cameras of their own under these names of tenant and site.
bool Demo::left_behind(const camera::Config& camera) const {
  bool simulated = camera.camera.str().starts_with(kIdStart) && camera.name.starts_with(kNameStart);
  return simulated && std::ranges::none_of(cameras_, [&](const CameraRecord& present) {
           return present.config.camera == camera.camera;
         });
}

asio::awaitable<void> Demo::remove_left_behind() {
  CameraFilter filter{.tenant = kTenant, .site = kSite, .limit = kCamerasMax};
  auto found = co_await catalog_.list_cameras(filter);
  if (!found) {
    log::warn("demo.left_behind", found.error().message);
    co_return;
  }
  for (const CameraRecord& camera : *found)
    if (left_behind(camera.config)) co_await remove(camera);
}

asio::awaitable<void> Demo::stop() {
  for (const CameraRecord& camera : std::exchange(cameras_, {})) co_await remove(camera);
  if (!camsim_) co_return;
  camsim_->signal(SIGTERM);
  co_await (camsim_->wait() || clock_.wait(3s));
  if (camsim_->running()) camsim_->signal(SIGKILL);
}

}  // namespace weir::apps
