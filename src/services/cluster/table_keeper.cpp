#include "table_keeper.hpp"

namespace weir::cluster {

namespace asio = boost::asio;

namespace {

constexpr Duration kConnectionsEvery = 2s;
constexpr Duration kTogether = 50ms;  // changes that come within this are written together
constexpr Duration kAgain = 500ms;
constexpr size_t kFieldsMax = 500;    // of one write: Redis does nothing else meanwhile

// Walks two maps with the same keys side by side: what differs is put, what is gone is removed, and `written` becomes
// what `now` is.
template <class Now, class Written, class Value, class Text>
void difference(const Now& now, Written& written, TableChange& out, Value value, Text text) {
  auto had = written.begin();
  for (const auto& [key, each] : now) {
    while (had != written.end() && had->first < key) {
      out.remove.push_back(had->first);
      had = written.erase(had);
    }
    bool known = had != written.end() && had->first == key;
    if (!known) had = written.emplace_hint(had, key, value(each));
    else if (had->second == value(each)) {
      ++had;
      continue;
    }
    else had->second = value(each);
    ++had;
    out.put.emplace(key, text(key, each));
  }
  while (had != written.end()) {
    out.remove.push_back(had->first);
    had = written.erase(had);
  }
}

}  // namespace

WorkerConnectionState connection_state(const Master& master, const std::string& worker, const std::string& process,
                                       std::vector<std::string> subscriptions) {
  WorkerConnectionState out{.url = worker, .process = process, .subscriptions = std::move(subscriptions)};
  const placement::Worker& known = master.world().workers.at(worker);
  out.online = known.online;
  out.cpu_percent = known.cpu_percent;
  out.memory_percent = known.memory_percent;
  if (const StateReport* report = master.report_of(worker)) {
    out.gpu_percent = report->gpu_percent;
    out.gpu_memory_percent = report->gpu_memory_percent;
  }
  out.last_heartbeat = master.seen(worker).last_report;
  out.connected_at = master.seen(worker).connected;
  return out;
}

std::map<std::string, std::vector<std::string>> subscriptions_by_worker(const placement::World& world) {
  std::map<std::string, std::vector<std::string>> out;
  for (const auto& [id, each] : world.assignments)
    if (!each.worker.empty()) out[each.worker].push_back(id);
  return out;
}

TableChange TableKeeper::connections(bool anew) const {
  TableChange out{.table = ClusterTable::connections, .empty_first = anew};
  auto has = subscriptions_by_worker(master_.world());
  for (const auto& [url, worker] : master_.world().workers)
    out.put.emplace(redact_url(url), write_record(connection_state(master_, url, process_, std::move(has[url]))));
  return out;
}

TableChange TableKeeper::desired(bool anew) {
  if (anew) desired_.clear();
  TableChange out{.table = ClusterTable::desired, .empty_first = anew};
  const auto& revisions = master_.world().desired;
  difference(master_.desired(), desired_, out,
             [&](const DesiredSubscription& each) { return revisions.at(each.id.text()).revision; },
             [](const std::string&, const DesiredSubscription& each) { return write_record(each); });
  return out;
}

TableChange TableKeeper::actual(bool anew) {
  if (anew) actual_.clear();
  TableChange out{.table = ClusterTable::actual, .empty_first = anew};
  Instant now = clock_.now();
  WallTime wall = clock_.wall();
  difference(master_.world().assignments, actual_, out,
             [](const placement::Assignment& each) -> const placement::Assignment& { return each; },
             [&](const std::string& id, const placement::Assignment& each) {
               ActualCameraSubscription record{.worker = each.worker, .status = each.status,
                                               .assigned_at = wall - (now - each.placed), .last_seen = wall,
                                               .reason = each.reason};
               if (auto name = Identifier::parse(id)) record.subscription = *std::move(name);
               if (auto wanted = master_.desired().find(id); wanted != master_.desired().end())
                 record.model_url = master_.model_address(wanted->second.model_id);
               return write_record(record);
             });
  return out;
}

asio::awaitable<bool> TableKeeper::write(TableChange change) {
  while (change.empty_first || !change.remove.empty() || !change.put.empty()) {
    TableChange part{.table = change.table, .empty_first = std::exchange(change.empty_first, false)};
    while (!change.remove.empty() && part.remove.size() < kFieldsMax) {
      part.remove.push_back(std::move(change.remove.back()));
      change.remove.pop_back();
    }
    while (!change.put.empty() && part.put.size() < kFieldsMax) part.put.insert(change.put.extract(change.put.begin()));
    std::vector<TableChange> parts;
    parts.push_back(std::move(part));
    Status written = co_await pen_.write(std::move(parts));
    if (!written || stopping_) co_return false;
  }
  co_return true;
}

asio::awaitable<bool> TableKeeper::write_all(bool anew) {
  if (anew || clock_.now() >= connections_due_) {
    connections_due_ = clock_.now() + kConnectionsEvery;
    bool written = co_await write(connections(anew));
    if (!written) co_return false;
  }
  if (!std::exchange(changed_, false) && !anew) co_return true;
  bool written = co_await write(desired(anew));
  if (written) written = co_await write(actual(anew));
  co_return written;
}

asio::awaitable<void> TableKeeper::run() {
  while (!stopping_) {
    Instant next = clock_.now() + kConnectionsEvery;
    if (pen_.ready()) {
      std::uint64_t opened = pen_.opened();
      bool written = co_await write_all(written_under_ != opened);
      written_under_ = written ? opened : 0;
      next = written ? connections_due_ : clock_.now() + kAgain;
      if (written && changed_) next = clock_.now() + kTogether;
      if (stopping_) co_return;
    }
    co_await alarm_.wait_until(next);
    // Changes come in bursts: a short wait lets one write to Redis carry them all.
    if (!stopping_ && changed_) co_await clock_.wait(kTogether);
  }
}

}  // namespace weir::cluster
