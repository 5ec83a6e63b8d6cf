#include "state.hpp"

#include "table_keeper.hpp"
#include "topics.hpp"

#include "weir/base/log.hpp"

#include <unordered_map>

namespace weir::cluster {

namespace {

constexpr Duration kFresh = 1s;    // no older than this without another look
constexpr Duration kUsable = 10s;  // what is older is not shown before it was read again

std::string_view word(LinkState state) {
  constexpr std::string_view words[] = {"connecting", "online", "offline", "reconnecting", "closed"};
  return words[static_cast<size_t>(state)];
}
std::string_view word(placement::Status status) {
  constexpr std::string_view words[] = {"pending", "active", "failed", "recovering"};
  return words[static_cast<size_t>(status)];
}

void put_member(std::string& out, std::string_view name, std::string_view text) {
  json::append_string(out, name);
  out += ':';
  if (text.empty()) out += "null";
  else json::append_string(out, text);
}

void put_subscription(std::string& all, std::string_view id, std::string_view worker, std::string_view status,
                      std::string_view reason) {
  if (!all.empty()) all += ',';
  json::append_string(all, id);
  all += ":{";
  put_member(all, "worker", worker);
  all += ',';
  put_member(all, "status", status);
  all += ',';
  put_member(all, "reason", reason);
  all += '}';
}

json::value percent(std::optional<double> value) { return value ? json::value(*value) : json::value(nullptr); }

// The object's text, with one more member, which is text already.
std::string with_member(const json::object& object, std::string_view name, std::string_view value) {
  std::string out = json::to_text(object);
  out.reserve(out.size() + name.size() + value.size() + 4);
  out.back() = ',';
  json::append_string(out, name);
  out += ':';
  out += value;
  out += '}';
  return out;
}

// A worker as it is shown, and what it has.
struct Shown {
  std::string url = {};
  std::vector<std::string_view> subscriptions = {};
};

std::string worker_text(const WorkerConnectionState& state, const Shown& shown, std::string_view link, int capacity) {
  json::object one{{"url", shown.url},
                   {"processId", state.process},
                   {"online", state.online},
                   {"cpuUsage", percent(state.cpu_percent)},
                   {"memoryUsage", percent(state.memory_percent)},
                   {"gpuUsage", percent(state.gpu_percent)},
                   {"gpuMemoryUsage", percent(state.gpu_memory_percent)},
                   {"subscriptionCount", shown.subscriptions.size()},
                   {"lastHeartbeat", to_iso(state.last_heartbeat)},
                   {"connectedAt", to_iso(state.connected_at)},
                   {"state", link},
                   {"capacity", capacity}};
  std::string list = "[";
  for (std::string_view each : shown.subscriptions) {
    if (list.size() > 1) list += ',';
    json::append_string(list, each);
  }
  return with_member(one, "subscriptions", list + "]");
}

std::string whole(json::object head, std::string_view workers, std::string_view subscriptions) {
  std::string text = with_member(head, "workers", workers);
  text.reserve(text.size() + subscriptions.size() + 32);
  text.back() = ',';
  text += "\"subscriptions\":{";
  text += subscriptions;
  text += "}}";
  return text;
}

json::array parsed(const SharedTable& table) {
  json::array out;
  for (const auto& [key, text] : table)
    if (auto record = json::parse_text(text)) out.push_back(*std::move(record));
  return out;
}

}  // namespace

std::string master_state_text(json::object head, const Master& master, const Roster& roster, const std::string& process) {
  const placement::World& world = master.world();
  std::unordered_map<std::string_view, Shown> shown;
  for (const auto& [url, worker] : world.workers) shown[url].url = redact_url(url);
  std::string placed;
  for (const auto& [id, each] : world.assignments) {
    Shown* has = each.worker.empty() ? nullptr : &shown.at(each.worker);
    if (has != nullptr) has->subscriptions.push_back(id);
    put_subscription(placed, id, has == nullptr ? "" : has->url, word(each.status), each.reason);
  }
  std::string workers;
  for (const auto& [url, worker] : world.workers)
    workers += (workers.empty() ? "[" : ",") + worker_text(connection_state(master, url, process, {}), shown.at(url),
                                                           word(master.state_of(url)), worker.capacity);
  head["totalWorkers"] = world.workers.size();
  json::array& slaves = head["slaves"].emplace_array();
  for (const SlaveState& each : roster.slaves())
    if (auto record = json::parse_text(write_record(each))) slaves.push_back(*std::move(record));
  head["totalSlaves"] = slaves.size();
  json::object& assignments = head["assignments"].emplace_object();
  for (const auto& [worker, slave] : roster.routes()) assignments[worker] = slave;
  return whole(std::move(head), workers.empty() ? "[]" : workers + "]", placed);
}

// ---- from the tables ----

// Only what has changed is read as JSON again.
void TableView::keep(SharedTable actual) {
  std::erase_if(rows_, [&](const auto& each) { return !actual.contains(each.first); });
  for (auto& [id, text] : actual) {
    Row& row = rows_[id];
    if (row.text == text) continue;
    auto record = read_actual_subscription(text);
    if (!record) continue;
    row = {std::move(text), std::move(record->worker), std::string(word(record->status)), std::move(record->reason)};
  }
}

Async<Nothing> TableView::read() {
  CO_TRY(connections, co_await on_.table(ClusterTable::connections));
  CO_TRY(actual, co_await on_.table(ClusterTable::actual));
  CO_TRY(slaves, co_await on_.table(ClusterTable::slaves));
  CO_TRY(assignments, co_await on_.table(ClusterTable::assignments));
  json::array workers = parsed(connections);
  workers_ = json::to_text(workers);
  workers_count_ = workers.size();
  slaves_ = parsed(slaves);
  assignments_ = std::move(assignments);
  keep(std::move(actual));
  read_at_ = clock_.now();
  co_return ok();
}

boost::asio::awaitable<void> TableView::read_besides() {
  (void)co_await read();
  reading_ = false;
}

// What is a little older is shown at once, and read anew besides.
Async<Nothing> TableView::fresh(Duration usable) {
  Duration age = read_at_ ? clock_.now() - *read_at_ : Duration::max();
  if (age > usable) co_return co_await read();
  if (age > kFresh && !std::exchange(reading_, true)) crew_.spawn(read_besides(), "the cluster's tables");
  co_return ok();
}

Async<std::string> TableView::state_text(json::object head) {
  Status read = co_await fresh(kUsable);
  if (!read) {
    log::warn("cluster.state_unread", "the cluster's tables cannot be read; its state is shown empty")
        .with(kTopic, kClusterTopic).with("error", read.error().message);
    rows_.clear();
    workers_ = "[]";
    workers_count_ = 0;
    slaves_.clear();
    assignments_.clear();
  }
  head["totalWorkers"] = workers_count_;
  head["slaves"] = slaves_;
  head["totalSlaves"] = slaves_.size();
  json::object& assignments = head["assignments"].emplace_object();
  for (const auto& [worker, slave] : assignments_) assignments[worker] = slave;
  std::string placed;
  for (const auto& [id, row] : rows_) put_subscription(placed, id, row.worker, row.status, row.reason);
  co_return whole(std::move(head), workers_, placed);
}

Async<std::vector<std::string>> TableView::workers_of(std::string camera) {
  Status read = co_await fresh(kFresh);
  if (!read) co_return read.error();
  std::vector<std::string> out;
  for (const auto& [id, row] : rows_)
    if (!row.worker.empty() && id.ends_with(";" + camera)) out.push_back(row.worker);
  co_return std::move(out);
}

}  // namespace weir::cluster
