#include "looks.hpp"

#include "weir/base/json.hpp"
#include "weir/base/log.hpp"
#include "weir/net/client.hpp"

namespace weir::orchestrator {

namespace asio = boost::asio;
using stream::StreamId;

namespace {
constexpr Duration kSoon = 300ms;  // while a forwarder waits for `out`

bool is_ours(std::string_view path) {
  return stream::stream_of_input(path).has_value() || stream::stream_of_output(path).has_value();
}
}  // namespace

asio::awaitable<void> Looks::run() {
  while (!shell_.over) {
    co_await look();
    ask_forwarders();
    Duration pause = waits_for_output() && !away_ ? kSoon : shell_.settings.look_every;
    if (!shell_.over) co_await shell_.look_soon.wait_until(shell_.ports.clock.now() + pause);
  }
}

bool Looks::waits_for_output() const {
  return std::ranges::any_of(shell_.streams, [](const auto& each) {
    const stream::State& state = each.second.state;
    return state.worker.life == stream::Life::running && !state.out_live && state.want_forwarder();
  });
}

void Looks::note(const Error* failed) {
  if (std::exchange(away_, failed != nullptr) == away_) return;
  if (failed != nullptr)
    log::warn("mediamtx.away", "MediaMTX's API does not answer; streams go on as they are, and missed hooks are not "
                               "found until it does").with("error", failed->message);
  else log::info("mediamtx.back", "MediaMTX's API answers");
}

// A list of many pages may lack a path that is there.
asio::awaitable<Result<bool>> Looks::confirm_absence(std::map<std::string, MediaPath>& paths) {
  std::vector<std::string> missing;
  for (const auto& [id, stream] : shell_.streams)
    if (stream.state.publisher.live && !paths.contains(stream::input_path(id))) missing.push_back(stream::input_path(id));
  for (const std::string& name : missing) {
    CO_TRY(found, co_await shell_.ports.media.find(name));
    if (found) paths[name] = *found;
  }
  co_return true;
}

void Looks::ask_forwarders() {
  Instant now = shell_.ports.clock.now();
  if (shell_.over || now < asked_ + shell_.settings.look_every) return;
  asked_ = now;
  for (auto& [id, stream] : shell_.streams) {
    const stream::Child& child = stream.state.forwarder;
    if (child.life == stream::Life::running && stream.forwarder != nullptr && !stream.forwarder->control().empty())
      shell_.spawn(ask_forwarder(id, child.instance, stream.forwarder->control()), "a question to a forwarder");
  }
}

// One that does not answer says nothing: its end, or its deadline, will.
asio::awaitable<void> Looks::ask_forwarder(StreamId id, std::string instance, std::string control) {
  auto client = net::HttpClient::create(shell_.io, control);
  if (!client) co_return;
  net::ClientRequest request{.target = "/healthz", .timeout = 2s};
  auto answer = co_await client->send(std::move(request));
  if (!answer || answer->status != 200 || shell_.over) co_return;
  auto said = json::parse_text(answer->body);
  const json::object* fields = said ? said->if_object() : nullptr;
  const json::value* flows = fields != nullptr ? fields->if_contains("flows") : nullptr;
  if (flows == nullptr || !flows->is_bool()) co_return;
  const json::value* problem = fields->if_contains("problem");
  stream::ForwardSeen seen{.instance = std::move(instance), .flowing = flows->get_bool()};
  if (problem != nullptr && problem->is_string()) seen.problem = problem->get_string();
  shell_.feed(id, std::move(seen));
}

asio::awaitable<void> Looks::look() {
  Instant asked_at = shell_.ports.clock.now();
  auto listed = co_await shell_.ports.media.list(is_ours);
  if (!listed) co_return note(&listed.error());
  std::map<std::string, MediaPath> paths;
  for (MediaPath& path : *listed)
    if (path.ready) paths.emplace(path.name, std::move(path));
  auto confirmed = co_await confirm_absence(paths);
  if (!confirmed) co_return note(&confirmed.error());
  note(nullptr);
  if (shell_.over) co_return;
  std::set<StreamId> ids;
  for (const auto& [name, path] : paths)
    if (auto id = stream::stream_of_input(name)) ids.insert(*id);
  for (const auto& [id, stream] : shell_.streams) ids.insert(id);
  for (const StreamId& id : ids) {
    stream::Looked seen{.asked_at = asked_at};
    if (auto out = paths.find(stream::output_path(id)); out != paths.end()) {
      seen.out = true;
      seen.out_id = out->second.source_id;
    }
    if (auto in = paths.find(stream::input_path(id)); in != paths.end() && in->second.ready)
      seen.in = stream::Source{in->second.source_type, in->second.source_id, {}};
    shell_.feed(id, seen);
  }
}

}  // namespace weir::orchestrator
