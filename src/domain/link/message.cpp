#include "weir/link/message.hpp"

namespace weir::link {

namespace {

template <class... F>
struct Each : F... {
  using F::operator()...;
};

json::array names_of(const std::vector<CameraId>& cameras) {
  json::array out;
  for (const CameraId& camera : cameras) out.push_back(json::value(camera.str()));
  return out;
}
json::array leases_of(const std::vector<LeaseGrant>& leases) {
  json::array out;
  for (const LeaseGrant& lease : leases) out.push_back(write_lease(lease));
  return out;
}

const json::value* member(const json::value& body, std::string_view name) {
  return body.is_object() ? body.get_object().if_contains(name) : nullptr;
}
std::string text_in(const json::value& body, std::string_view name) {
  const json::value* found = member(body, name);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}
Result<std::vector<CameraId>> cameras_in(const json::value& body, std::string_view name) {
  std::vector<CameraId> cameras;
  json::Context ctx;
  if (const json::value* found = member(body, name)) json::read_value(*found, cameras, std::string(name), ctx);
  if (!ctx.problems.empty()) return json::problems_error(ctx.problems);
  return cameras;
}

struct LastWordText {
  CameraId camera;
  std::optional<std::string> last_capture;
};
template <class V>
void fields(V& v, LastWordText& w) {
  v.required("camera_uuid", w.camera);
  v.optional("last_capture", w.last_capture);
  v.rule("last_capture", !w.last_capture || from_iso(*w.last_capture) ? "" : "must be a time");
}

// Under which name the answer lists the cameras that fell silent; "" where none does.
std::string_view silenced_by(const Message& message) {
  if (const auto* change = std::get_if<ChangeSources>(&message)) return change->remove.empty() ? "" : "removed";
  return std::holds_alternative<Silence>(message) ? "silent" : "";
}

}  // namespace

std::string_view route_of(const Message& message) {
  return std::visit([](const auto& each) { return each.route; }, message);
}

json::object write_message(const Message& message) {
  return std::visit(Each{[](const ChangeSources& m) {
                           json::object out;
                           if (!m.add.empty()) {
                             json::array& add = out["add"].emplace_array();
                             for (const Source& source : m.add) add.push_back(write_source(source));
                           }
                           if (!m.remove.empty()) out["remove"] = names_of(m.remove);
                           return out;
                         },
                         [](const Leases& m) {
                           json::object out;
                           if (!m.items.empty()) out["items"] = leases_of(m.items);
                           if (!m.lost.empty()) out["lost"] = names_of(m.lost);
                           if (!m.base_url.empty()) out["base_url"] = m.base_url;
                           if (!m.token.empty()) out["token"] = m.token.reveal();
                           return out;
                         },
                         [](const Activate& m) { return json::object{{"items", leases_of(m.items)}}; },
                         [](const Silence& m) { return json::object{{"cameras", names_of(m.cameras)}}; },
                         [](const Drain&) { return json::object(); }},
                    message);
}

// The manager does not wait long for answers to messages on which the right to publish depends: it sends them again.
Duration answer_within(const Message& message) {
  const auto* leases = std::get_if<Leases>(&message);
  bool short_one = std::holds_alternative<Silence>(message) || (leases != nullptr && leases->token.empty());
  return short_one ? 1s : 3s;
}

Result<ChangeSources> read_change_sources(const json::value& body, double max_fps) {
  ChangeSources out;
  TRY(gone, cameras_in(body, "remove"));
  out.remove = std::move(gone);
  const json::value* list = member(body, "add");
  if (list == nullptr) return out;
  if (!list->is_array()) return json::problems_error({{"add", "must be a list"}});
  for (const json::value& each : list->get_array()) {
    TRY(source, read_source(each, max_fps));
    out.add.push_back(std::move(source));
  }
  return out;
}

Result<Leases> read_lease_message(const json::value& body) {
  Leases out{.base_url = text_in(body, "base_url"), .token = Secret(text_in(body, "token"))};
  if (member(body, "items") != nullptr) {
    TRY(items, read_leases(body));
    out.items = std::move(items);
  }
  for (LeaseGrant& item : out.items) item.extends = true;
  TRY(lost, cameras_in(body, "lost"));
  out.lost = std::move(lost);
  return out;
}

Result<Activate> read_activate(const json::value& body) {
  TRY(items, read_leases(body));
  return Activate{std::move(items)};
}

Result<Silence> read_silence(const json::value& body) {
  TRY(cameras, cameras_in(body, "cameras"));
  return Silence{std::move(cameras)};
}

json::object write_answer(const Message& message, const std::vector<LastWord>& said) {
  json::array words;
  for (const LastWord& each : said)
    words.push_back(json::object{
        {"camera_uuid", each.camera.str()},
        {"last_capture", each.last_capture ? json::value(to_iso_exact(*each.last_capture)) : json::value(nullptr)}});
  using Out = json::object;
  return std::visit(Each{[&](const ChangeSources& m) -> Out { return {{"added", m.add.size()}, {"removed", words}}; },
                         [&](const Leases& m) -> Out { return {{"leases", m.items.size()}, {"lost", m.lost.size()}}; },
                         [&](const Activate& m) -> Out { return {{"activated", m.items.size()}}; },
                         [&](const Silence&) -> Out { return {{"silent", words}}; },
                         [&](const Drain&) -> Out { return {{"draining", true}}; }},
                    message);
}

Result<std::vector<LastWord>> read_answer(const Message& message, std::string_view body) {
  std::vector<LastWord> out;
  std::string_view name = silenced_by(message);
  if (name.empty()) return out;
  TRY(said, json::parse_text(body));
  const json::value* list = member(said, name);
  if (list == nullptr) return json::problems_error({{std::string(name), "is required"}});
  TRY(words, json::read<std::vector<LastWordText>>(*list));
  for (const LastWordText& each : words)
    out.push_back({each.camera, each.last_capture ? from_iso(*each.last_capture) : std::nullopt});
  return out;
}

}  // namespace weir::link
