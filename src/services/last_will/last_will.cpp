#include "weir/last_will/last_will.hpp"

#include "weir/base/json.hpp"
#include "weir/base/log.hpp"
#include "weir/base/spawn.hpp"

#include <boost/asio/this_coro.hpp>

#include <utility>

namespace weir::last_will {

namespace asio = boost::asio;

namespace {

constexpr Duration kAtStart = 3s;  // no longer: a runner that starts has cameras to look after
constexpr Duration kAskEvery = 200ms;

std::string text_in(const json::value& v, std::string_view name) {
  const json::value* found = v.is_object() ? v.get_object().if_contains(name) : nullptr;
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}

}  // namespace

LastWill::LastWill(Clock& clock, ProcessHost& host, Household& household, TestamentFile& file, FindOffice find_office,
                   Settings settings)
    : clock_(clock),
      host_(host),
      household_(household),
      file_(file),
      find_office_(std::move(find_office)),
      settings_(std::move(settings)) {}

asio::awaitable<Result<int>> LastWill::run() {
  executor_ = co_await asio::this_coro::executor;
  co_await send_left_behind();
  CO_TRY(manager, host_.start(settings_.manager));
  manager_ = std::move(manager);
  if (settings_.started) settings_.started();
  spawn(executor_, listen(), "listening to the manager");
  int code = co_await manager_->wait();
  if (code != 0) log::error("runner.manager_ended", "the manager ended").with("exit_code", code);
  co_await settle();
  co_return code >= 128 ? 1 : code;
}

asio::awaitable<void> LastWill::send_left_behind() {
  std::optional<Testament> found = file_.left_behind();
  if (!found) co_return;
  log::info("runner.will_found", "the runner before this one died here; its leases are released first");
  bool sent = co_await send(*found, kAtStart);
  if (sent) forget();
  else unsent_ = std::move(found);
}

asio::awaitable<void> LastWill::listen() {
  for (;;) {
    auto line = co_await manager_->read_line();
    if (!line) co_return;
    hear(*line);
  }
}

void LastWill::hear(const std::string& line) {
  auto said = json::parse_text(line);
  if (!said) return;
  std::string address = text_in(*said, "listening"), control_plane = text_in(*said, "control_plane");
  if (!address.empty() && settings_.listening) settings_.listening(address);
  if (!control_plane.empty()) control_plane_ = std::move(control_plane);
  Testament testament{settings_.runner, BootId::trusted(text_in(*said, "boot_id")), Secret(text_in(*said, "will"))};
  if (testament.boot.empty() || testament.will.empty()) return;
  // The control plane has answered the manager: now it can be sent the will that could not be sent at the start.
  if (auto older = std::exchange(unsent_, {})) spawn(executor_, send_late(*std::move(older)), "an earlier boot's will");
  if (auto kept = file_.write(testament); !kept) log::warn("runner.lock", kept.error().message);
  testament_ = std::move(testament);
}

asio::awaitable<void> LastWill::settle() {
  if (!household_.end_all()) {
    log::error("runner.stuck", "a child cannot be ended: its leases are left to expire");
    co_return;
  }
  if (!testament_) co_return;
  bool sent = co_await send(*testament_, settings_.ttl);
  if (sent) forget();
}

asio::awaitable<bool> LastWill::send(Testament testament, Duration limit) const {
  Instant until = clock_.now() + limit;
  std::unique_ptr<WillOffice> office = find_office_(control_plane_);
  if (!office) co_return false;
  for (int refused = 0; clock_.now() < until;) {
    WillAnswer answer = co_await office->carry_out(testament);
    // Refused at every address: this boot is unknown, so there is nothing to release.
    if (answer == WillAnswer::refused) ++refused;
    if (answer == WillAnswer::carried_out || refused >= office->addresses()) co_return true;
    co_await clock_.wait(kAskEvery);
  }
  log::warn("runner.will_failed", "the control plane did not answer: the leases are left to expire");
  co_return false;
}

asio::awaitable<void> LastWill::send_late(Testament testament) const {
  co_await send(std::move(testament), settings_.ttl);
}

void LastWill::forget() const {
  if (auto cleared = file_.clear(); !cleared) log::warn("runner.lock", cleared.error().message);
}

void LastWill::signal(int number) const {
  if (manager_) manager_->signal(number);
}

bool LastWill::abandon() const {
  if (!manager_ || !manager_->running()) return false;
  household_.end_all();
  return true;
}

}  // namespace weir::last_will
