#include "weir/stream/memory.hpp"

namespace weir::stream {

namespace {

ChildMemory remember_child(const Child& child, Instant now) {
  ChildMemory out{child.given, restart::moved(child.window, -now.time_since_epoch()), child.problem};
  // What is over is alike, however long ago it was.
  out.window.next_start = std::max(out.window.next_start, Instant{});
  if (!out.window.cooling(Instant{})) out.window.cooling_until.reset();
  return out;
}
Child recall_child(const ChildMemory& memory, Instant now) {
  return {.given = memory.given, .window = restart::moved(memory.window, now.time_since_epoch()),
          .problem = memory.problem};
}

struct ChildText {
  std::int64_t given = 0;
  json::object window;
  std::string problem;
};
template <class V>
void fields(V& v, ChildText& c) {
  v.optional("given_version", c.given);
  v.optional("window", c.window);
  v.optional("problem", c.problem);
}

constexpr std::int64_t kLongest = Duration(24h * 365 * 10).count();
struct MemoryText {
  std::string id;
  std::string run_id, source_type, source_id, degraded, last_error;
  Secret query;
  std::int64_t session_age_us = 0, version = 0;
  bool ending = false, live = false, leased = false, stopped = false;
  std::optional<std::int64_t> gone_for_us;
  std::optional<bool> forward;
  ChildText worker, forwarder;
};
template <class V>
void fields(V& v, MemoryText& m) {
  v.required("stream_id", m.id);
  v.optional("run_id", m.run_id, json::length(0, kSourceMax));
  v.optional("session_age_us", m.session_age_us, json::range<std::int64_t>(0, kLongest));
  v.optional("ending", m.ending);
  v.optional("source_type", m.source_type);
  v.optional("source_id", m.source_id);
  v.optional("query", m.query);
  v.optional("live", m.live);
  v.optional("gone_for_us", m.gone_for_us, json::range<std::int64_t>(0, kLongest));
  v.optional("lease_version", m.version);
  v.optional("leased", m.leased);
  v.optional("worker", m.worker);
  v.optional("forwarder", m.forwarder);
  v.optional("ordered_stop", m.stopped);
  v.optional("ordered_forward", m.forward);
  v.optional("degraded", m.degraded);
  v.optional("last_error", m.last_error);
}

ChildText text_of(const ChildMemory& child) {
  return {child.given.n, restart::write_window(child.window, Instant{}), child.problem};
}
Result<ChildMemory> child_of(const ChildText& text) {
  TRY(window, restart::read_window(text.window, Instant{}));
  return ChildMemory{{text.given}, window, text.problem};
}

}  // namespace

Memory remember(const State& s, Instant now) {
  Memory out{.id = s.id, .run_id = s.run_id, .ending = s.phase == Phase::stopping, .source = s.publisher.source,
             .live = s.publisher.live, .version = s.lease.version, .leased = s.lease.holding != Holding::none,
             .worker = remember_child(s.worker, now), .forwarder = remember_child(s.forwarder, now),
             .orders = s.orders, .degraded = s.degraded, .last_error = s.last_error};
  if (s.session()) out.session_age = now - s.session_since;
  if (s.publisher.gone_since) out.gone_for = now - *s.publisher.gone_since;
  return out;
}

State recall(const Memory& m, Instant now) {
  bool session = !m.run_id.empty();
  State out{.id = m.id,
            .phase = session ? m.ending ? Phase::stopping : Phase::starting
                             : m.orders.stopped ? Phase::stopped : Phase::idle,
            .since = now, .run_id = m.run_id, .session_since = now - m.session_age,
            .publisher = {.live = m.live, .source = m.source, .heard_at = {}},
            .lease = {.holding = m.leased ? Holding::unsure : Holding::none, .version = m.version},
            .worker = recall_child(m.worker, now), .forwarder = recall_child(m.forwarder, now),
            .orders = m.orders, .degraded = m.degraded, .last_error = m.last_error, .surveyed = false};
  if (m.gone_for) out.publisher.gone_since = now - *m.gone_for;
  return out;
}

json::object write_memory(const Memory& m) {
  MemoryText text{.id = m.id.str(), .run_id = m.run_id, .source_type = m.source.type, .source_id = m.source.id,
                  .degraded = m.degraded, .last_error = m.last_error, .query = m.source.query,
                  .session_age_us = m.session_age.count(), .version = m.version.n, .ending = m.ending, .live = m.live,
                  .leased = m.leased, .stopped = m.orders.stopped, .forward = m.orders.forward,
                  .worker = text_of(m.worker), .forwarder = text_of(m.forwarder)};
  if (m.gone_for) text.gone_for_us = m.gone_for->count();
  return json::write_value(text).as_object();
}

Result<Memory> read_memory(const json::value& v) {
  TRY(text, json::read<MemoryText>(v));
  TRY(id, read_stream_id(text.id));
  TRY(worker, child_of(text.worker));
  TRY(forwarder, child_of(text.forwarder));
  Memory out{.id = id, .run_id = text.run_id, .session_age = Duration(text.session_age_us), .ending = text.ending,
             .source = {text.source_type, text.source_id, text.query}, .live = text.live, .version = {text.version},
             .leased = text.leased, .worker = worker, .forwarder = forwarder,
             .orders = {text.stopped, text.forward}, .degraded = text.degraded, .last_error = text.last_error};
  if (text.gone_for_us) out.gone_for = Duration(*text.gone_for_us);
  return out;
}

}  // namespace weir::stream
