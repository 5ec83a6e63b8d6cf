// The manager's workers: started, asked, told, and seen to their end.
#include "worker_process.hpp"

#include "weir/base/log.hpp"
#include "weir/net/token.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace weir::runner {

namespace asio = boost::asio;

namespace {

constexpr Duration kLookWithin = 1s;  // what a worker takes to say how it is

json::object source_of(const camera::Config& config) {
  json::object out = camera::write_config(config, camera::Credentials::shown);
  for (const char* name : {"enabled", "processing"}) out.erase(name);
  return out;
}

std::string read_and_remove(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::remove(path.c_str());
  return text.str();
}

CameraId camera_in(const std::string& text) {
  auto parsed = json::parse_text(text);
  const json::value* camera = parsed && parsed->is_object() ? parsed->get_object().if_contains("camera_uuid") : nullptr;
  return camera != nullptr && camera->is_string() ? CameraId::trusted(std::string(camera->get_string())) : CameraId();
}

json::object lease_of(const TellItem& item, const BootId& boot) {
  const lease::Speak& right = *item.right;
  json::object out{{"camera_uuid", item.camera.str()},
                   {"version", right.version.n},
                   {"grant_version", right.grant.n},
                   {"boot_id", boot.str()},
                   {"valid_until_us", right.valid_until.time_since_epoch().count()}};
  if (right.adopt)
    out["adopt"] = json::object{{"boot_id", right.adopt->boot.str()}, {"grant_version", right.adopt->grant.n}};
  if (item.after) out["after"] = to_iso_exact(*item.after);
  return out;
}

struct Request {
  std::string path;
  json::object body;
  Duration timeout = 3s;
};

Request request_of(const Tell& message, const BootId& boot) {
  json::array names, leases, sources;
  for (const TellItem& item : message.items) {
    names.push_back(json::value(item.camera.str()));
    if (item.right) leases.push_back(lease_of(item, boot));
    if (item.config) {
      json::object source = source_of(*item.config);
      source["lease"] = lease_of(item, boot);
      sources.push_back(std::move(source));
    }
  }
  switch (message.what) {
    case Message::add: return {"/sources", {{"add", std::move(sources)}}};
    case Message::remove: return {"/sources", {{"remove", std::move(names)}}};
    case Message::activate: return {"/activate", {{"items", std::move(leases)}}};
    case Message::extend: return {"/leases", {{"items", std::move(leases)}}, 1s};
    case Message::lose: return {"/leases", {{"lost", std::move(names)}}, 1s};
    case Message::silence: return {"/silence", {{"cameras", std::move(names)}}, 1s};
    case Message::drain: return {"/drain", {}};
  }
  return {};
}

std::int64_t number_in(const json::object& o, std::string_view name) {
  const json::value* found = o.if_contains(name);
  return found != nullptr && found->is_int64() ? found->get_int64() : 0;
}

SeenCamera seen_of(const json::object& camera) {
  SeenCamera out;
  if (const auto* id = camera.if_contains("camera_uuid")) out.camera = CameraId::trusted(std::string(id->get_string()));
  if (const auto* state = camera.if_contains("state")) out.streaming = *state == "STREAMING";
  out.failures = number_in(camera, "errors");
  out.inferred = number_in(camera, "inferred") > 0;
  if (const auto* behind = camera.if_contains("behind")) out.behind = *behind == true;
  if (const auto* age = camera.if_contains("last_frame_age_s"); age != nullptr && age->is_number())
    out.frame_age = from_seconds(age->to_number<double>());
  const json::value* error = camera.if_contains("error");
  const json::value* code = error != nullptr && error->is_object() ? error->get_object().if_contains("code") : nullptr;
  if (code != nullptr && code->is_string())
    for (const auto& [value, name] : restart::kStreamErrorCodeNames)
      if (code->get_string() == name) out.error = value;
  return out;
}

}  // namespace

asio::awaitable<Result<net::ClientResponse>> Manager::WorkerProcess::post(std::string path, json::object body,
                                                                          Secret token, Duration timeout) {
  if (!control) co_return Error{Errc::unavailable, "worker", "the worker does not answer yet"};
  net::ClientRequest request{.method = net::Method::post, .target = std::move(path), .body = json::to_text(body),
                             .bearer = std::move(token), .timeout = timeout};
  co_return co_await control->send(std::move(request));
}

asio::awaitable<Result<net::ClientResponse>> Manager::WorkerProcess::get(std::string path, Secret token, Duration timeout) {
  if (!control) co_return Error{Errc::unavailable, "worker", "the worker does not answer yet"};
  net::ClientRequest request{.target = std::move(path), .bearer = std::move(token), .timeout = timeout};
  co_return co_await control->send(std::move(request));
}

json::object Manager::shard_document(const StartWorker& order) const {
  json::array sources, models;
  for (const camera::Config& config : order.sources) sources.push_back(source_of(config));
  for (const camera::Model& model : order.models) models.push_back(json::value(model.detector + "/" + model.name));
  return {{"runner_id", owner_.runner.str()},
          {"shard_id", fmt::format("shard-{}", order.shard)},
          {"sources", std::move(sources)},
          {"standby", order.standby},
          {"preload", std::move(models)},
          {"cp", json::object{{"base_url", bus_url_}, {"token", bus_token_.reveal()}}},
          {"control_token", control_token_.reveal()},
          {"dials_file", settings_.folder + "/dials"},
          {"crash_file", fmt::format("{}/crash-{}.json", settings_.folder, order.worker)}};
}

asio::awaitable<void> Manager::run_worker(StartWorker order) {
  auto worker = std::make_shared<WorkerProcess>();
  worker->number = order.worker;
  worker->shard = fmt::format("shard-{}", order.shard);
  worker->crash_file = fmt::format("{}/crash-{}.json", settings_.folder, order.worker);
  workers_[order.worker] = worker;
  Status up = co_await bring_up(worker, std::move(order));
  if (up) {
    spawn(tell_the_bus(worker), "token");  // what has changed since it was started
    feed(WorkerUp{worker->number});
    spawn(watch_worker(worker), "worker state");
  } else if (!worker->killed) {
    log::error("worker.start_failed", up.error().message).with("shard_id", worker->shard);
    worker->kill();
  }
  int code = worker->child ? co_await worker->child->wait() : 10;
  worker->ended = true;
  CameraId crashed = co_await culprit(worker->crash_file);
  WorkerGone gone{worker->number, code == 0 && !up ? 10 : code, std::move(crashed)};
  log::info("worker.exited").with("shard_id", worker->shard).with("pid", worker->pid()).with("exit_code", code);
  feed(gone);
  workers_.erase(worker->number);
}

asio::awaitable<Status> Manager::bring_up(WorkerPtr worker, StartWorker order) {
  while (bus_token_.empty() && !code_ && !worker->killed) co_await clock_.wait(20ms);
  Program program{.path = settings_.worker_program,
                  .arguments = {"shard", "--config", "/dev/fd/3", "--lifeline-fd", "0"},
                  .nice = 5,
                  .unset = {"API_KEY", "DATABASE_URL", "PGPASSWORD", "WEIR_TOKEN"}};  // it reads what strangers send
  program.arguments.insert(program.arguments.end(), settings_.worker_arguments.begin(), settings_.worker_arguments.end());
  worker->bus_told = bus_changes_;
  program.document = Secret(json::to_text(shard_document(order)));
  CO_TRY(child, host_.start(program));
  worker->child = std::move(child);
  if (worker->killed) worker->kill();
  CO_TRY(line, co_await worker->child->read_line());
  CO_TRY(ready, json::parse_text(line));
  const json::value* address = ready.is_object() ? ready.get_object().if_contains("control") : nullptr;
  if (address == nullptr || !address->is_string())
    co_return Error{Errc::unavailable, "worker", "the worker did not name its address"};
  worker->url = std::string(address->get_string());
  CO_TRY(client, net::HttpClient::create(io_, worker->url));
  worker->control.emplace(std::move(client));
  log::info("worker.spawned")
      .with("shard_id", worker->shard)
      .with("pid", worker->pid())
      .with("standby", order.standby)
      .with("cameras", order.sources.size());
  co_return ok();
}

asio::awaitable<void> Manager::watch_worker(WorkerPtr worker) {
  while (!worker->ended && !code_) {
    auto answer = co_await worker->get("/state", control_token_, kLookWithin);
    if (worker->ended) co_return;
    auto parsed = answer && answer->status == 200 ? json::parse_text(answer->body) : Result<json::value>(json::value());
    if (parsed && parsed->is_object()) {
      worker->state = *parsed;
      worker->heard = clock_.now();
      const json::object& said = parsed->get_object();
      WorkerHeard heard{.worker = worker->number};
      if (const auto* cameras = said.if_contains("cameras"); cameras != nullptr && cameras->is_array())
        for (const json::value& each : cameras->get_array())
          if (each.is_object()) heard.cameras.push_back(seen_of(each.get_object()));
      if (const auto* stuck = said.if_contains("stuck"); stuck != nullptr && stuck->is_array() && !stuck->get_array().empty())
        heard.stuck = seen_of(stuck->get_array()[0].as_object()).camera;
      feed(heard);
    } else {
      feed(WorkerSilent{worker->number, worker->child->cpu_time()});
    }
    co_await clock_.wait(settings_.worker_look);
  }
}

asio::awaitable<void> Manager::tell(Tell message) {
  Told failed{.message = message.message};
  auto found = workers_.find(message.worker);
  if (found == workers_.end()) {
    co_await clock_.wait(1ms);
    feed(failed);
    co_return;
  }
  WorkerPtr worker = found->second;
  Request request = request_of(message, owner_.boot);
  auto answer = co_await worker->post(std::move(request.path), std::move(request.body), control_token_, request.timeout);
  if (!answer || answer->status >= 300) {
    if (!worker->ended)
      log::warn("worker.control_failed", answer ? net::response_error(*answer).message : answer.error().message)
          .with("shard_id", worker->shard);
    feed(failed);
    co_return;
  }
  auto told = read_told(message, *answer);
  feed(told ? *told : failed);
}

// Removals and silences say what the camera's last emitted capture was.
Result<Told> Manager::read_told(const Tell& message, const net::ClientResponse& answer) const {
  Told told{.message = message.message, .ok = true};
  const char* list = message.what == Message::remove ? "removed" : message.what == Message::silence ? "silent" : nullptr;
  if (list == nullptr) return told;
  TRY(parsed, json::parse_text(answer.body));
  const json::value* items = parsed.is_object() ? parsed.get_object().if_contains(list) : nullptr;
  if (items == nullptr || !items->is_array()) return Error{Errc::unavailable, "worker", "the worker's answer cannot be read"};
  for (const json::value& item : items->get_array()) {
    if (!item.is_object()) continue;
    const json::value* camera = item.get_object().if_contains("camera_uuid");
    const json::value* last = item.get_object().if_contains("last_capture");
    if (camera == nullptr || !camera->is_string() || last == nullptr || !last->is_string()) continue;
    if (auto time = from_iso(last->get_string())) told.last_capture[CameraId::trusted(std::string(camera->get_string()))] = *time;
  }
  return told;
}

// Whose thread crashed, as the worker's signal handler wrote it down. Who has to wait for the disk is not told.
asio::awaitable<CameraId> Manager::culprit(std::string crash_file) {
  struct Answer {
    asio::steady_timer due;
    CameraId camera = {};
  };
  auto answer = std::make_shared<Answer>(Answer{asio::steady_timer(io_)});
  asio::post(disk_, [this, answer, crash_file = std::move(crash_file)]() mutable {
    std::string text = read_and_remove(crash_file);
    asio::post(io_, [answer = std::move(answer), text = std::move(text)] {
      answer->camera = camera_in(text);
      answer->due.cancel();
    });
  });
  boost::system::error_code was_read;
  answer->due.expires_after(500ms);
  co_await answer->due.async_wait(asio::redirect_error(asio::use_awaitable, was_read));
  co_return answer->camera;
}

// Green has blue's name while it stands by, and nothing to say yet: blue answers to it until its last camera has moved.
std::map<std::string, Manager::WorkerPtr> Manager::speaking(const Summary& now) const {
  std::set<WorkerNumber> speak;
  for (const CameraView& camera : now.cameras) speak.insert(camera.worker);
  std::map<std::string, WorkerPtr> out;
  for (const auto& [number, worker] : workers_) {
    if (!worker->control || worker->ended) continue;
    WorkerPtr& answers = out[worker->shard];
    if (!answers || (speak.contains(number) && !speak.contains(answers->number))) answers = worker;
  }
  return out;
}

std::vector<Manager::WorkerAddress> Manager::workers() const {
  std::vector<WorkerAddress> out;
  for (const auto& [shard, worker] : speaking(brain_.summary())) out.push_back({shard, worker->url});
  return out;
}

asio::awaitable<Result<net::ClientResponse>> Manager::ask_worker(std::string shard, std::string path) {
  auto all = speaking(brain_.summary());
  auto found = all.find(shard);
  if (found == all.end()) co_return Error{Errc::not_found, "no_worker", "there is no worker for that shard"};
  WorkerPtr worker = found->second;
  co_return co_await worker->get(std::move(path), control_token_, 3s);
}

// Somebody wants to see the camera. That there is no picture is an answer as well.
asio::awaitable<void> Manager::send_picture(CameraId camera, std::string request) {
  ++pictures_under_way_;
  SnapshotPicture picture{.request = std::move(request)};
  Summary now = brain_.summary();
  auto view = std::ranges::find(now.cameras, camera, &CameraView::camera);
  auto found = view == now.cameras.end() ? workers_.end() : workers_.find(view->worker);
  if (found != workers_.end()) {
    WorkerPtr worker = found->second;
    auto answer = co_await worker->get(fmt::format("/snapshot/{}.jpg", percent_encode(camera.str())), control_token_, 3s);
    if (answer && answer->status == 200) {
      picture.jpeg = net::base64url(answer->body);
      picture.captured_at = answer->headers["x-captured-at"];
    }
  }
  auto sent = co_await plane_.send_picture(camera, owner_.runner, std::move(picture));
  if (!sent) log::warn("camera.snapshot_unsent", sent.error().message).with("camera_uuid", camera);
  --pictures_under_way_;
}

}  // namespace weir::runner
