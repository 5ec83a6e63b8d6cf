#include "state.hpp"

#include "table_keeper.hpp"
#include "topics.hpp"

#include "weir/base/log.hpp"

#include <boost/json/monotonic_resource.hpp>

namespace weir::cluster {

namespace {

namespace bj = boost::json;

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

void put_text(json::object& into, std::string_view name, std::string_view text) {
  if (text.empty()) into[name] = nullptr;
  else into[name] = text;
}

void put_subscription(json::object& all, std::string_view id, std::string_view worker, std::string_view status,
                      std::string_view reason) {
  json::object& one = all[id].emplace_object();
  one.reserve(3);
  put_text(one, "worker", worker);
  one["status"] = status;
  put_text(one, "reason", reason);
}

void put_percent(json::object& into, std::string_view name, std::optional<double> value) {
  if (value) into[name] = *value;
  else into[name] = nullptr;
}

void put_worker(json::array& all, const WorkerConnectionState& state, std::string_view url, std::string_view link,
                int capacity) {
  json::object& one = all.emplace_back(bj::object_kind).get_object();
  one.reserve(13);
  one["url"] = url;
  one["processId"] = state.process;
  one["online"] = state.online;
  put_percent(one, "cpuUsage", state.cpu_percent);
  put_percent(one, "memoryUsage", state.memory_percent);
  put_percent(one, "gpuUsage", state.gpu_percent);
  put_percent(one, "gpuMemoryUsage", state.gpu_memory_percent);
  one["subscriptionCount"] = state.subscriptions.size();
  json::array& subscriptions = one["subscriptions"].emplace_array();
  subscriptions.reserve(state.subscriptions.size());
  for (const std::string& each : state.subscriptions) subscriptions.emplace_back(each);
  one["lastHeartbeat"] = to_iso(state.last_heartbeat);
  one["connectedAt"] = to_iso(state.connected_at);
  one["state"] = link;
  one["capacity"] = capacity;
}

json::array parsed(const SharedTable& table) {
  json::array out;
  for (const auto& [key, text] : table)
    if (auto record = json::parse_text(text)) out.push_back(*std::move(record));
  return out;
}

}  // namespace

json::object new_state() { return json::object(bj::make_shared_resource<bj::monotonic_resource>()); }

json::object with_master_state(json::object out, const Master& master, const Roster& roster, const std::string& process) {
  const placement::World& world = master.world();
  std::map<std::string, std::string> shown;
  for (const auto& [url, worker] : world.workers) shown.emplace(url, redact_url(url));
  out["totalWorkers"] = world.workers.size();
  json::array& workers = out["workers"].emplace_array();
  workers.reserve(world.workers.size());
  auto has = subscriptions_by_worker(world);
  for (const auto& [url, worker] : world.workers)
    put_worker(workers, connection_state(master, url, process, std::move(has[url])), shown.at(url),
               word(master.state_of(url)), worker.capacity);
  json::array& slaves = out["slaves"].emplace_array();
  for (const SlaveState& each : roster.slaves())
    if (auto record = json::parse_text(write_record(each))) slaves.push_back(*std::move(record));
  out["totalSlaves"] = slaves.size();
  json::object& assignments = out["assignments"].emplace_object();
  for (const auto& [worker, slave] : roster.routes()) assignments[worker] = slave;
  json::object& placed = out["subscriptions"].emplace_object();
  placed.reserve(world.assignments.size());
  for (const auto& [id, each] : world.assignments)
    put_subscription(placed, id, each.worker.empty() ? std::string_view() : shown.at(each.worker), word(each.status),
                     each.reason);
  return out;
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
  workers_ = parsed(connections);
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

Async<json::object> TableView::with_state(json::object out) {
  Status read = co_await fresh(kUsable);
  if (!read) {
    log::warn("cluster.state_unread", "the cluster's tables cannot be read; its state is shown empty")
        .with(kTopic, kClusterTopic).with("error", read.error().message);
    rows_.clear();
    workers_.clear();
    slaves_.clear();
    assignments_.clear();
  }
  out["totalWorkers"] = workers_.size();
  out["workers"] = workers_;
  out["slaves"] = slaves_;
  out["totalSlaves"] = slaves_.size();
  json::object& assignments = out["assignments"].emplace_object();
  for (const auto& [worker, slave] : assignments_) assignments[worker] = slave;
  json::object& placed = out["subscriptions"].emplace_object();
  placed.reserve(rows_.size());
  for (const auto& [id, row] : rows_) put_subscription(placed, id, row.worker, row.status, row.reason);
  co_return std::move(out);
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
