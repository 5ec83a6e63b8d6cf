#include "weir/ports/runners.hpp"

#include "weir/ports/store_errors.hpp"

namespace weir {

namespace {
struct About {
  Runner& runner;
};
template <class V>
void fields(V& v, About& a) {
  v.optional("deployment_group", a.runner.deployment.group);
  v.optional("deployment_version", a.runner.deployment.version);
  v.optional("host", a.runner.address.host);
  v.optional("port", a.runner.address.port);
  v.optional("metrics_port", a.runner.address.metrics_port);
  v.optional("capabilities", a.runner.capabilities);
  v.optional("said_capacity", a.runner.said_capacity);
  v.optional("capacity_pinned", a.runner.capacity_pinned);
  v.optional("models", a.runner.models);
}
}  // namespace

boost::json::object write_about(const Runner& runner) {
  json::Writer writer;
  About about{const_cast<Runner&>(runner)};  // a Writer only reads
  fields(writer, about);
  return writer.take();
}

void read_about(const boost::json::value& about, Runner& runner) {
  if (!about.is_object()) return;
  json::Context ignored;
  json::Reader reader(about.get_object(), "", ignored);
  About into{runner};
  fields(reader, into);
}

Runner changed(Runner runner, const RunnerChange& change) {
  if (change.cordoned) runner.cordoned = *change.cordoned;
  if (change.drain) runner.drain = *change.drain;
  if (change.unpin && runner.said_capacity != 0) runner.capacity = runner.said_capacity;
  if (change.capacity) runner.capacity = *change.capacity;
  if (change.unpin || change.capacity) runner.capacity_pinned = change.capacity.has_value();
  return runner;
}

void keep_orders(const Runner& before, Runner& again) {
  again.cordoned = before.cordoned;
  again.drain = before.drain;
  // Rows of an earlier Weir do not say who set the capacity: it was an operator where the runner said another one.
  again.capacity_pinned = before.capacity_pinned || (before.said_capacity != 0 && before.capacity != before.said_capacity);
  if (again.capacity_pinned) again.capacity = before.capacity;
}

Status may_register_again(const Runner& before, const Runner& again, const TenantId& caller) {
  bool of_another = !again.tenant.empty() && !before.tenant.empty() && before.tenant != again.tenant;
  bool of_all = !caller.empty() && before.tenant.empty();
  return of_another || of_all ? Status(exists_already("runner", "runner_id")) : ok();
}

Result<Runner> commanded(Result<Runner> seen, const TenantId& caller) {
  if (seen && !caller.empty() && seen->tenant != caller)
    return Error{Errc::forbidden, "tenant_token", "this runner serves all tenants: a token bound to one cannot command it"};
  return seen;
}

DrainMode drain_mode(std::string_view stored) {
  for (const auto& [mode, name] : kDrainModeNames)
    if (stored == name) return mode;
  return DrainMode::none;
}

}  // namespace weir
