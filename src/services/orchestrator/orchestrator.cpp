#include "weir/orchestrator/orchestrator.hpp"

#include "looks.hpp"
#include "shell.hpp"

#include "weir/base/log.hpp"
#include "weir/net/client.hpp"
#include "weir/stream/view.hpp"

#include <boost/asio/post.hpp>

namespace weir::orchestrator {

namespace asio = boost::asio;
using stream::Role;
using stream::StreamId;

struct Orchestrator::Parts {
  Parts(asio::io_context& io, OrchestratorPorts ports, net::Metrics& metrics, OrchestratorSettings settings)
      : shell(io, ports, metrics, std::move(settings)), looks(shell) {}

  asio::awaitable<void> adopt();
  void adopt_child(std::unique_ptr<Kept> child, std::map<StreamId, stream::ChildrenFound>& found);
  asio::awaitable<void> keep_time();
  asio::awaitable<void> follow_orders();
  void carry_out(const StreamOrder& given);
  asio::awaitable<void> read_wishes_until_answered(StreamId id);

  Shell shell;
  Looks looks;
};

Orchestrator::Orchestrator(asio::io_context& io, OrchestratorPorts ports, net::Metrics& metrics,
                           OrchestratorSettings settings)
    : parts_(std::make_unique<Parts>(io, ports, metrics, std::move(settings))) {}
Orchestrator::~Orchestrator() = default;

// ---- what an earlier orchestrator of this boot left behind ----

void Orchestrator::Parts::adopt_child(std::unique_ptr<Kept> child, std::map<StreamId, stream::ChildrenFound>& found) {
  auto note = read_note(child->note());
  if (!note) {
    log::warn("child.unknown", "a process of this orchestrator has no note that can be read: it is ended")
        .with("name", child->name());
    child->kill();
    return;
  }
  stream::Found seen{.run_id = note->run_id,
                     .instance = note->instance,
                     .version = {child->version()},
                     .started = Instant(Duration(note->started_us))};
  auto& both = found[note->stream];
  (note->role == Role::worker ? both.worker : both.forwarder) = seen;
  Stream& stream = shell.streams.try_emplace(note->stream).first->second;
  stream.state.id = note->stream;
  stream.child(note->role) = std::move(child);
}

asio::awaitable<void> Orchestrator::Parts::adopt() {
  std::map<StreamId, stream::ChildrenFound> found;
  for (auto& child : shell.ports.children.adopt()) adopt_child(std::move(child), found);
  // Without the records nobody knows which session a process belongs to, so they are waited for.
  Result<std::vector<StreamRecord>> records = co_await shell.ports.plane.records();
  while (!records && !shell.over) {
    log::warn("orchestrator.waits", "the records of streams cannot be read; trying again")
        .with("error", records.error().message);
    co_await shell.ended.wait_until(shell.ports.clock.now() + 1s);
    if (!shell.over) records = co_await shell.ports.plane.records();
  }
  if (shell.over) co_return;
  Instant now = shell.ports.clock.now();
  for (const StreamRecord& record : *records) {
    auto id = StreamId::trusted(record.id.str());
    auto memory = stream::read_memory(record.memory);
    bool mine = record.holder == shell.settings.owner.runner || found.contains(id);
    if (!memory || memory->run_id.empty() || !mine) continue;
    Stream& stream = shell.streams.try_emplace(id).first->second;
    stream.state = stream::recall(*memory, now);
    stream.state.id = id;
    found.try_emplace(id);
  }
  shell.adopted = true;
  for (auto& [id, children] : found) {
    Stream& stream = shell.streams.at(id);
    for (const StreamRecord& record : *records) {
      if (record.id.str() != id.str()) continue;
      stream.home = read_home(record);
      if (auto wishes = stream::read_wishes(record.wishes)) stream.wishes = *wishes;
    }
    stream.loading = false;
    if (stream.state.surveyed) stream.state = stream::recall(stream::Memory{.id = id}, now);
    shell.settings_changed(stream);
    shell.feed(id, children);
    for (Role role : {Role::worker, Role::forwarder})
      if (stream.child(role) != nullptr)
        shell.watch(id, role, (role == Role::worker ? children.worker : children.forwarder)->instance);
  }
  shell.begin();
  log::info("orchestrator.started", "follows MediaMTX").with("adopted_streams", found.size());
}

// ---- time, orders ----

asio::awaitable<void> Orchestrator::Parts::keep_time() {
  constexpr Duration kIdle = 60s;
  while (!shell.over) {
    for (const StreamId& id : shell.agenda.take_due(shell.ports.clock.now()))
      if (!shell.forget(id)) shell.feed(id, stream::TimePassed{});
    Instant next = shell.agenda.next().value_or(shell.ports.clock.now() + kIdle);
    if (next > shell.ports.clock.now()) co_await shell.changed.wait_until(next);
  }
}

asio::awaitable<void> Orchestrator::Parts::read_wishes_until_answered(StreamId id) {
  while (!shell.over) {
    bool read = co_await shell.read_wishes(id);
    if (read) co_return;
    co_await shell.ended.wait_until(shell.ports.clock.now() + 5s);
  }
}

// An order about a stream that is not here is another orchestrator's.
void Orchestrator::Parts::carry_out(const StreamOrder& given) {
  auto id = StreamId::trusted(given.id.str());
  if (!shell.streams.contains(id) || shell.over) return;
  log::info("stream.ordered", "an operator's order").with("streamId", id).with("order", given.what);
  if (given.what == "stop") shell.feed(id, stream::StopOrdered{});
  else if (given.what == "restart") shell.feed(id, stream::RestartOrdered{});
  else if (given.what == "forward") shell.feed(id, stream::ForwardOrdered{given.forward});
  else if (given.what == "wishes") shell.spawn(read_wishes_until_answered(id), "a stream's wishes");
}

asio::awaitable<void> Orchestrator::Parts::follow_orders() {
  while (!shell.over) {
    Status ended = co_await shell.ports.plane.follow([this](const StreamOrder& given) {
      carry_out(given);
    });
    if (!ended) log::debug("orders.lost", ended.error().message);
    if (!ended && ended.error().reason == "orders_missing")
      for (const auto& [id, stream] : shell.streams) shell.spawn(read_wishes_until_answered(id), "a stream's wishes");
    if (!shell.over) co_await shell.ended.wait_until(shell.ports.clock.now() + 1s);
  }
}

// ---- the whole ----

asio::awaitable<void> Orchestrator::run() {
  Shell& shell = parts_->shell;
  shell.spawn(shell.desk.run(), "the lease desk");
  co_await parts_->adopt();
  shell.spawn(parts_->keep_time(), "the streams' time");
  shell.spawn(parts_->follow_orders(), "orders");
  shell.spawn(parts_->looks.run(), "looks at MediaMTX");
  while (!shell.over) co_await shell.ended.wait_until(shell.ports.clock.now() + 3600s);
}

void Orchestrator::stop() {
  Shell& shell = parts_->shell;
  shell.over = true;
  shell.desk.close();
  shell.ended.ring();
  shell.changed.ring();
  shell.look_soon.ring();
}

asio::awaitable<void> Orchestrator::stop_streams(Duration within) {
  Shell& shell = parts_->shell;
  Instant until = shell.ports.clock.now() + within;
  for (auto& [id, stream] : shell.streams) shell.feed(id, stream::StopOrdered{});
  auto busy = [&] {
    return std::ranges::any_of(shell.streams, [](const auto& each) {
      return each.second.worker != nullptr || each.second.forwarder != nullptr ||
             each.second.state.lease.holding != stream::Holding::none;
    });
  };
  while (busy() && shell.ports.clock.now() < until) co_await shell.ports.clock.wait(50ms);
}

void Orchestrator::hear(const stream::Hook& hook, bool ready) {
  Shell& shell = parts_->shell;
  asio::post(shell.io, [&shell, hook, ready] {
    if (ready) shell.feed(hook.stream, stream::PublisherReady{hook.source});
    else if (shell.streams.contains(hook.stream)) shell.feed(hook.stream, stream::PublisherGone{hook.source.id});
  });
}

void Orchestrator::order(const StreamOrder& order) { parts_->carry_out(order); }

bool Orchestrator::ready() const { return parts_->shell.adopted; }
const lease::Owner& Orchestrator::owner() const { return parts_->shell.settings.owner; }

std::vector<std::pair<StreamId, Role>> Orchestrator::measured() const {
  std::vector<std::pair<StreamId, Role>> out;
  for (auto& [id, stream] : parts_->shell.streams)
    for (Role role : {Role::worker, Role::forwarder})
      if (auto& child = stream.child(role); child != nullptr && !child->control().empty()) out.emplace_back(id, role);
  return out;
}

asio::awaitable<Result<std::string>> Orchestrator::child_metrics(StreamId id, Role role) const {
  Shell& shell = parts_->shell;
  auto at = shell.streams.find(id);
  if (at == shell.streams.end() || at->second.child(role) == nullptr || at->second.child(role)->control().empty())
    co_return Error{Errc::not_found, "no_such_child", "no such process of this stream runs here and serves metrics"};
  std::string url = at->second.child(role)->control();
  CO_TRY(client, net::HttpClient::create(shell.io, url));
  net::ClientRequest request{.target = "/metrics", .timeout = 2s};
  CO_TRY(answer, co_await client.send(std::move(request)));
  co_return std::move(answer.body);
}

boost::json::object Orchestrator::view(const StreamId& id) const {
  const Shell& shell = parts_->shell;
  auto at = shell.streams.find(id);
  if (at == shell.streams.end()) return {};
  boost::json::object out = stream::write_view(at->second.state, shell.ports.clock.now(), shell.ports.clock.wall());
  bool held = at->second.state.lease.holding == stream::Holding::held;
  out["tenant_id"] = shell.home_of(at->second).tenant.str();
  out["site_id"] = shell.home_of(at->second).site.str();
  out["holder"] = held ? json::value(shell.settings.owner.runner.str()) : json::value(nullptr);
  return out;
}

std::vector<boost::json::object> Orchestrator::views() const {
  std::vector<boost::json::object> out;
  for (const auto& [id, stream] : parts_->shell.streams) out.push_back(view(id));
  return out;
}

}  // namespace weir::orchestrator
