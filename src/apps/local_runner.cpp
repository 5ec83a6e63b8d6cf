#include "local_runner.hpp"

#include "weir/base/backoff.hpp"
#include "weir/base/log.hpp"
#include "weir/base/random.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <csignal>

namespace weir::apps {

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;

namespace {

constexpr Duration kStep = 100ms;
constexpr Duration kLookEvery = 1s;
constexpr Duration kTokenLife = 15min;
constexpr Duration kReadyLimit = 20s;

json::object source_of(const CameraRecord& record) {
  json::object out = camera::write_config(record.config, camera::Credentials::shown);
  for (const char* name : {"enabled", "processing"}) out.erase(name);
  return out;
}

json::object lease_of(const CameraId& camera, const lease::Speak& speak, const BootId& boot) {
  json::object out{{"camera_uuid", camera.str()},
                   {"version", speak.version.n},
                   {"grant_version", speak.grant.n},
                   {"boot_id", boot.str()},
                   {"valid_until_us", speak.valid_until.time_since_epoch().count()}};
  if (speak.adopt)
    out["adopt"] = json::object{{"boot_id", speak.adopt->boot.str()}, {"grant_version", speak.adopt->grant.n}};
  return out;
}

}  // namespace

LocalRunner::LocalRunner(asio::io_context& io, Clock& clock, LeaseStore& leases, Catalog& catalog, net::TokenKey key,
                         LocalRunnerSettings settings)
    : io_(io),
      clock_(clock),
      leases_(leases),
      catalog_(catalog),
      key_(std::move(key)),
      settings_(std::move(settings)),
      owner_{RunnerId::trusted("local"), BootId::trusted(random_hex(16))},
      control_token_(random_hex(32)) {}

Secret LocalRunner::bus_token() const {
  net::Claims claims{.sub = owner_.runner.str(), .role = net::Role::worker, .boot = owner_.boot,
                     .expires = clock_.wall() + kTokenLife};
  return key_.sign(claims);
}

asio::awaitable<Status> LocalRunner::start_worker() {
  json::object shard{{"runner_id", owner_.runner.str()},
                     {"shard_id", "shard-0"},
                     {"sources", json::array()},
                     {"cp", json::object{{"base_url", settings_.control_plane}, {"token", bus_token().reveal()}}},
                     {"control_token", control_token_.reveal()}};
  std::vector<std::string> arguments{"shard", "--config", "/dev/fd/3", "--lifeline-fd", "0"};
  arguments.insert(arguments.end(), settings_.worker_arguments.begin(), settings_.worker_arguments.end());
  CO_TRY(child, ChildProcess::start(io_, helper_path("worker"), arguments, Secret(json::to_text(shard))));
  worker_.emplace(std::move(child));
  auto answer = co_await (worker_->read_line() || clock_.wait(kReadyLimit));
  if (answer.index() == 1) co_return Error{Errc::unavailable, "worker", "the worker did not get ready in time"};
  CO_TRY(line, std::get<0>(std::move(answer)));
  CO_TRY(ready, json::parse_text(line));
  const json::value* address = ready.is_object() ? ready.get_object().if_contains("control") : nullptr;
  if (address == nullptr || !address->is_string())
    co_return Error{Errc::unavailable, "worker", "the worker did not name its address"};
  CO_TRY(client, net::HttpClient::create(io_, std::string_view(address->get_string())));
  control_.emplace(std::move(client));
  next_token_ = clock_.now() + kTokenLife / 3;
  log::info("worker.spawn", "a worker runs").with("pid", worker_->pid()).with("shard_id", "shard-0");
  co_return ok();
}

// Whatever the dead worker was told is forgotten; its versions are used up.
void LocalRunner::worker_died(int code) {
  log::warn("worker.exited", "the worker ended; starting another").with("exit_code", code);
  worker_.reset();
  control_.reset();
  state_ = nullptr;
  restart_at_ = clock_.now() + Backoff{.first = 100ms, .cap = 10s}.delay(restarts_++, random_unit());
  for (auto& [id, camera] : cameras_) forget_handover(camera);
}

// Whether or not a worker has heard of the version in hand, no other may be given it.
void LocalRunner::forget_handover(Camera& camera) {
  camera.sent.clear();
  if (!camera.speak || std::exchange(camera.fresh, false)) return;
  camera.speak.reset();
  feed(camera, lease::FreshVersionNeeded{});
}

void LocalRunner::feed(Camera& camera, const lease::HolderEvent& event) {
  auto step = lease::step(camera.holder, event, clock_.now(), settings_.policy, owner_.boot);
  camera.holder = std::move(step.next);
  perform(camera, step.actions);
}

void LocalRunner::perform(Camera& camera, const std::vector<lease::HolderAction>& actions) {
  for (const lease::HolderAction& action : actions) {
    if (const auto* send = std::get_if<lease::SendQuestion>(&action)) {
      questions_.push_back(send->question);
    } else if (const auto* speak = std::get_if<lease::Speak>(&action)) {
      if (!camera.speak || camera.speak->grant != speak->grant) camera.token = false;
      camera.fresh |= speak->fresh;
      std::optional<lease::Tenure> adopt = speak->adopt;
      if (!adopt && camera.speak && camera.sent.empty()) adopt = camera.speak->adopt;
      camera.speak = *speak;
      camera.speak->adopt = adopt;
    } else if (std::holds_alternative<lease::StopCamera>(action)) {
      camera.speak.reset();
      if (!std::exchange(camera.sent, {}).empty()) lost_.insert(camera.holder.camera);
    }
    // DropSpool: the worker drops what belongs to another tenure when it is told of the loss or of the new grant.
  }
}

asio::awaitable<void> LocalRunner::look_at_catalog() {
  std::map<CameraId, CameraRecord> wanted;
  for (CameraFilter filter{.enabled = true, .limit = 1000};;) {
    auto page = co_await catalog_.list_cameras(filter);
    if (!page) co_return;  // the store is away: what runs goes on
    for (CameraRecord& record : *page)
      if (record.config.assignable()) wanted.emplace(record.config.camera, record);
    if (page->size() < static_cast<size_t>(filter.limit)) break;
    filter.after = page->back().config.camera;
  }
  for (auto& [id, record] : wanted) {
    Camera& camera = cameras_[id];
    bool known = !camera.holder.camera.empty() && camera.holder.phase != lease::Phase::idle;
    camera.holder.camera = id;
    camera.record = record;
    if (!known) feed(camera, lease::Wanted{});
  }
  for (auto& [id, camera] : cameras_) {
    if (wanted.contains(id) || camera.holder.phase == lease::Phase::idle) continue;
    // Silence first, release after it.
    if (!std::exchange(camera.sent, {}).empty()) {
      json::object body{{"remove", json::array{id.str()}}};
      co_await post("/sources", std::move(body));
    }
    camera.speak.reset();
    feed(camera, lease::Unwanted{});
  }
  json::object beat{{"type", "runner.heartbeat"}, {"shards", worker_ ? 1 : 0}};
  co_await catalog_.heartbeat(owner_.runner, {}, std::move(beat), static_cast<int>(cameras_.size()));
}

asio::awaitable<void> LocalRunner::ask_store() {
  auto questions = std::exchange(questions_, {});
  for (lease::Operation operation : {lease::Operation::acquire, lease::Operation::renew, lease::Operation::release}) {
    lease::Batch batch{.operation = operation, .owner = owner_, .ttl = settings_.policy.ttl};
    std::vector<std::uint64_t> ids;
    for (const lease::Question& question : questions)
      if (question.operation == operation) {
        batch.asks.push_back(question.ask);
        ids.push_back(question.id);
      }
    if (ids.empty()) continue;
    auto answers = co_await leases_.apply(batch);
    for (size_t i = 0; i < ids.size(); ++i) {
      auto found = cameras_.find(batch.asks[i].camera);
      if (found == cameras_.end()) continue;
      if (answers)
        feed(found->second, lease::Answered{ids[i], (*answers)[i]});
      else
        feed(found->second, lease::Unanswered{ids[i]});
    }
  }
}

asio::awaitable<bool> LocalRunner::post(std::string path, json::object body) {
  if (!control_) co_return false;
  net::ClientRequest request{.method = net::Method::post, .target = std::move(path), .body = json::to_text(body),
                             .bearer = control_token_, .timeout = 3s};
  auto answer = co_await control_->send(std::move(request));
  if (answer && answer->status < 300) co_return true;
  log::warn("worker.control_failed", answer ? net::response_error(*answer).message : answer.error().message);
  co_return false;
}

// The site's token is taken once for a grant, before the first dial.
asio::awaitable<bool> LocalRunner::may_dial(Camera& camera) {
  if (camera.token) co_return true;
  if (clock_.now() < camera.token_retry) co_return false;
  BudgetUse use{camera.holder.camera, camera.speak->grant};
  auto answer = co_await leases_.consume(camera.record.config.site, {}, use);
  camera.token = answer && answer->granted;
  Duration later = answer ? answer->retry_after : Duration(1s);
  camera.token_retry = clock_.now() + std::clamp(later, Duration(100ms), Duration(5s));
  co_return camera.token;
}

asio::awaitable<void> LocalRunner::tell_worker() {
  json::array add, leases, lost;
  std::vector<Camera*> added;
  for (auto& [id, camera] : cameras_) {
    if (!camera.speak) continue;
    std::string wanted = json::to_text(source_of(camera.record));
    if (camera.sent != wanted) {
      // A version goes to one process: a worker that has not heard of this camera needs a fresh one.
      if ((camera.sent.empty() && !camera.fresh) || !co_await may_dial(camera) || !camera.speak) continue;
      json::object source = source_of(camera.record);
      source["lease"] = lease_of(id, *camera.speak, owner_.boot);
      add.push_back(std::move(source));
      camera.sent = wanted;
      added.push_back(&camera);
    } else if (camera.told_until != camera.speak->valid_until) {
      leases.push_back(lease_of(id, *camera.speak, owner_.boot));
    }
    camera.fresh = false;
    camera.told_until = camera.speak->valid_until;
  }
  for (const CameraId& id : std::exchange(lost_, {})) lost.push_back(json::value(id.str()));
  if (!add.empty()) {
    json::object body{{"add", std::move(add)}};
    if (!co_await post("/sources", std::move(body)))
      for (Camera* camera : added) forget_handover(*camera);
  }
  json::object body;
  if (!leases.empty()) body["items"] = leases;
  if (!lost.empty()) body["lost"] = lost;
  if (clock_.now() >= next_token_) {
    body["token"] = bus_token().reveal();
    next_token_ = clock_.now() + kTokenLife / 3;
  }
  if (!body.empty()) co_await post("/leases", std::move(body));
}

asio::awaitable<void> LocalRunner::look_at_worker() {
  net::ClientRequest request{.target = "/state", .bearer = control_token_, .timeout = 3s};
  auto answer = co_await control_->send(std::move(request));
  if (!answer || answer->status != 200) co_return;
  if (auto parsed = json::parse_text(answer->body)) state_ = *parsed;
  restarts_ = 0;
}

asio::awaitable<void> LocalRunner::run() {
  Runner self{.id = owner_.runner, .host = "localhost", .capacity = 1000, .boot = owner_.boot};
  while (!stopping_) {
    auto registered = co_await catalog_.register_runner(self, net::sha256_hex(random_hex(32)));
    if (registered) break;
    co_await clock_.wait(1s);
  }
  while (!stopping_) {
    if (worker_ && !worker_->running()) worker_died(co_await worker_->wait());
    if (!worker_ && clock_.now() >= restart_at_)
      if (auto started = co_await start_worker(); !started) {
        log::error("worker.start_failed", started.error().message);
        if (worker_) worker_died(-1);
        restart_at_ = clock_.now() + 5s;
      }
    bool look = clock_.now() >= next_catalog_;
    if (look) next_catalog_ = clock_.now() + kLookEvery;
    if (look) co_await look_at_catalog();
    for (auto& [id, camera] : cameras_)
      if (auto wake = lease::wake_at(camera.holder, settings_.policy); wake && clock_.now() >= *wake)
        feed(camera, lease::TimePassed{});
    if (!questions_.empty()) co_await ask_store();
    if (control_) co_await tell_worker();
    if (look && control_) co_await look_at_worker();
    co_await clock_.wait(kStep);
  }
  ended_ = true;
}

asio::awaitable<void> LocalRunner::stop() {
  stopping_ = true;
  while (!ended_) co_await clock_.wait(20ms);
  if (worker_ && worker_->running()) {
    worker_->signal(SIGTERM);
    auto ended = co_await (worker_->wait() || clock_.wait(settings_.grace));
    if (ended.index() == 1) log::warn("worker.killed", "the worker did not drain within its grace");
    worker_.reset();
  }
  lease::Batch batch{.operation = lease::Operation::release, .owner = owner_, .ttl = settings_.policy.ttl};
  for (auto& [id, camera] : cameras_)
    if (camera.holder.phase == lease::Phase::holding) batch.asks.push_back({.camera = id, .version = camera.holder.version});
  if (!batch.asks.empty()) co_await leases_.apply(batch);
}

}  // namespace weir::apps
