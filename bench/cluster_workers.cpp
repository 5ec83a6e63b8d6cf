#include "cluster_workers.hpp"

#include "weir/base/json.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include <fmt/format.h>

#include <future>

namespace weir::bench {

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {
constexpr Duration kReportEvery = 2s;
}

SimulatedWorkers::SimulatedWorkers(int workers) : workers_(static_cast<size_t>(workers)) {
  router_.add(net::Method::get, "/w/{number}", [this](net::Request& request) -> asio::awaitable<net::Response> {
    size_t number = std::stoul(request.param("number"));
    if (number >= workers_.size()) co_return net::Response::text("there is no such worker", 404);
    net::Response response;
    response.socket = [this, number](net::WebSocket& socket) { return converse(number, socket); };
    co_return response;
  });
  server_ = std::make_unique<net::HttpServer>(io_, clock_, router_, net::ServerLimits{});
  if (Status listening = server_->listen("127.0.0.1:0"); !listening) {
    std::fputs((listening.error().message + "\n").c_str(), stderr);
    std::exit(1);
  }
  asio::co_spawn(io_, report_on(), asio::detached);
  thread_ = std::thread([this] { io_.run(); });
}

SimulatedWorkers::~SimulatedWorkers() {
  io_.stop();
  thread_.join();
}

asio::awaitable<void> SimulatedWorkers::converse(size_t number, net::WebSocket& socket) {
  Worker& worker = workers_[number];
  worker.socket = &socket;
  while (auto message = co_await socket.receive()) obey(worker, message->bytes);
  if (worker.socket == &socket) worker.socket = nullptr;
}

void SimulatedWorkers::obey(Worker& worker, const std::string& text) {
  auto read = json::parse_text(text);
  if (!read) return;
  const json::object& command = read->as_object();
  const auto& kind = command.at("type").as_string();
  if (kind == "requestState") return report(worker);
  bool subscribe = kind == "subscribe";
  if (!subscribe && kind != "unsubscribe") return;
  const json::object& payload = command.at("payload").as_object();
  std::string id(payload.at("subscriptionIdentifier").as_string());
  worker.report.clear();
  if (!subscribe) {
    worker.running.erase(id);
    return;
  }
  worker.running[id] = json::to_text({{"subscriptionIdentifier", id}, {"modelId", payload.at("modelId")},
                                      {"modelName", payload.at("modelName")}, {"online", true}});
  std::lock_guard lock(mutex_);
  if (given_.try_emplace(std::move(id), moment()).second) came_.notify_all();
}

void SimulatedWorkers::report(Worker& worker) {
  if (worker.socket == nullptr) return;
  if (worker.report.empty()) {
    worker.report = R"({"type":"stateReport","cpuUsage":20,"memoryUsage":30,"cameraConnections":[)";
    for (const auto& [id, entry] : worker.running) worker.report += (worker.report.back() == '[' ? "" : ",") + entry;
    worker.report += "]}";
  }
  (void)worker.socket->post({worker.report, false});
}

// The workers' turns are spread evenly.
asio::awaitable<void> SimulatedWorkers::report_on() {
  Instant due = clock_.now();
  for (size_t turn = 0;; ++turn) {
    report(workers_[turn % workers_.size()]);
    due += kReportEvery / static_cast<int>(workers_.size());
    co_await clock_.wait_until(due);
  }
}

template <class Question>
auto SimulatedWorkers::ask(Question question) {
  std::promise<decltype(question())> answer;
  asio::post(io_, [&] { answer.set_value(question()); });
  return answer.get_future().get();
}

SimulatedWorkers::Counts SimulatedWorkers::counts() {
  return ask([this] {
    Counts all;
    for (const Worker& each : workers_) {
      all.connected += each.socket != nullptr ? 1 : 0;
      all.subscriptions += each.running.size();
    }
    return all;
  });
}

void SimulatedWorkers::forget() {
  ask([this] {
    for (Worker& each : workers_) {
      each.running.clear();
      each.report.clear();
    }
    return true;
  });
}

std::optional<Moment> SimulatedWorkers::given(const std::string& subscription, Span patience) {
  std::unique_lock lock(mutex_);
  if (!came_.wait_for(lock, patience, [&] { return given_.contains(subscription); })) return std::nullopt;
  return given_.at(subscription);
}

asio::awaitable<void> SimulatedWorkers::send_on(int rate, size_t count, size_t first, std::vector<Moment>& due) {
  std::vector<std::pair<Worker*, std::string>> all;
  for (Worker& worker : workers_)
    for (const auto& [id, entry] : worker.running) all.emplace_back(&worker, id);
  Moment begun = moment();
  while (due.size() < count && !all.empty()) {
    Moment next = begun + Span(1s) * static_cast<std::int64_t>(due.size()) / rate;
    if (next > moment()) {
      co_await clock_.wait(std::chrono::ceil<Duration>(next - moment()));
      continue;
    }
    const auto& [worker, id] = all[due.size() % all.size()];
    if (worker->socket != nullptr)
      (void)worker->socket->post(
          {fmt::format(R"({{"type":"imageDetection","subscriptionIdentifier":"{}","timestamp":"{}","data":{{)"
                       R"("detection":{{"carBrand":"Fiat","licensePlateText":"seen-{:012}"}},"modelId":7,"modelName":"vehicles",)"
                       R"("boxes":[{{"label":"car","score":0.75,"box":[10,20,110,90]}}]}}}})",
                       id, to_iso(clock_.wall()), first + due.size()),
           false});
    due.push_back(next);
  }
}

std::vector<Moment> SimulatedWorkers::send(int rate, size_t count, size_t first) {
  std::vector<Moment> due;
  due.reserve(count);
  std::promise<void> done;
  asio::co_spawn(io_, send_on(rate, count, first, due), [&](std::exception_ptr) { done.set_value(); });
  done.get_future().wait();
  return due;
}

}  // namespace weir::bench
