#include "path_answer.hpp"

#include "weir/base/json.hpp"

namespace weir::mediamtx {

namespace {

using json::value;

const value* field(const value& v, std::string_view name) {
  const value* found = v.is_object() ? v.get_object().if_contains(name) : nullptr;
  return found == nullptr || found->is_null() ? nullptr : found;
}
// The first of the names that is there.
const value* field_of(const value& v, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names)
    if (const value* found = field(v, name)) return found;
  return nullptr;
}
std::optional<std::string> text_of(const value& v, std::string_view name) {
  const value* found = field(v, name);
  if (found == nullptr || !found->is_string()) return {};
  return std::string(found->get_string());
}
// 0 where it is absent or no whole number.
std::uint64_t number_of(const value* v) {
  if (v == nullptr) return 0;
  if (v->is_uint64()) return v->get_uint64();
  return v->is_int64() && v->get_int64() > 0 ? static_cast<std::uint64_t>(v->get_int64()) : 0;
}

std::optional<MediaClient> client_of(const value& v) {
  auto type = text_of(v, "type"), id = text_of(v, "id");
  if (!type || !id) return {};
  return MediaClient{*std::move(type), *std::move(id)};
}

// A path that is always available plays a picture of its own while nobody publishes: then it is available, not online.
// A publisher that has announced himself and sends nothing yet makes it online, not available.
std::optional<bool> ready_of(const value& item) {
  const value *available = field_of(item, {"available", "ready"}), *online = field(item, "online");
  if (available == nullptr || !available->is_bool() || (online != nullptr && !online->is_bool())) return {};
  return available->get_bool() && (online == nullptr || online->get_bool());
}

std::vector<std::string> tracks_of(const value& item) {
  std::vector<std::string> out;
  const value* tracks = field_of(item, {"tracks2", "tracks"});
  if (tracks == nullptr || !tracks->is_array()) return out;
  for (const value& track : tracks->get_array()) {
    if (track.is_string()) out.emplace_back(track.get_string());
    else if (auto codec = text_of(track, "codec")) out.push_back(*std::move(codec));
  }
  return out;
}

}  // namespace

Error bad_answer() {
  return {Errc::unavailable, "bad_answer",
          "MediaMTX's answer cannot be read: see whether the URL is that of MediaMTX's control API (port 9997)"};
}

Result<MediaPath> read_path(const value& item) {
  auto name = text_of(item, "name");
  auto ready = ready_of(item);
  if (!name || name->empty() || !ready) return bad_answer();
  MediaPath out{.name = *std::move(name), .ready = *ready};
  if (const value* source = field(item, "source")) {
    auto client = client_of(*source);
    if (!client) return bad_answer();
    out.source_type = std::move(client->type);
    out.source_id = std::move(client->id);
  }
  if (const value* readers = field(item, "readers")) {
    if (!readers->is_array()) return bad_answer();
    for (const value& reader : readers->get_array()) {
      auto client = client_of(reader);
      if (!client) return bad_answer();
      out.readers.push_back(*std::move(client));
    }
  }
  out.tracks = tracks_of(item);
  out.inbound_bytes = number_of(field_of(item, {"inboundBytes", "bytesReceived"}));
  return out;
}

Result<Page> read_page(std::string_view body, const std::function<bool(std::string_view)>& wanted) {
  auto parsed = json::parse_text(body);
  const value* items = parsed ? field(*parsed, "items") : nullptr;
  if (items == nullptr || !items->is_array()) return bad_answer();
  Page out{.pages = static_cast<std::int64_t>(number_of(field(*parsed, "pageCount"))),
           .paths = static_cast<std::int64_t>(number_of(field(*parsed, "itemCount")))};
  for (const value& item : items->get_array()) {
    auto name = text_of(item, "name");
    if (!name) return bad_answer();
    if (out.first.empty()) out.first = *name;
    out.last = *name;
    if (!wanted(*name)) continue;
    TRY(path, read_path(item));
    out.kept.push_back(std::move(path));
  }
  return out;
}

}  // namespace weir::mediamtx
