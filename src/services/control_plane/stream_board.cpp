#include "stream_board.hpp"

namespace weir::control_plane {

namespace {
// The board remembers many cameras, and a worker's texts about each may be long.
constexpr size_t kWordMax = 64, kDetailMax = 512;

std::string text_of(const json::object& object, std::string_view name, size_t bytes_max = kWordMax) {
  const json::value* found = object.if_contains(name);
  if (found == nullptr || !found->is_string()) return {};
  std::string_view text = found->get_string();
  size_t end = std::min(text.size(), bytes_max);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end));
}

std::optional<double> number_of(const json::object& object, std::string_view name) {
  const json::value* found = object.if_contains(name);
  return found != nullptr && found->is_number() ? std::optional(found->to_number<double>()) : std::nullopt;
}

std::optional<camera::FrameSize> size_in(const json::object& said) {
  camera::FrameSize size;
  for (auto [name, side] : {std::pair{"width", &size.width}, {"height", &size.height}}) {
    const json::value* found = said.if_contains(name);
    if (found == nullptr || !found->is_int64() || found->get_int64() < 1 || found->get_int64() > 65536) return {};
    *side = static_cast<int>(found->get_int64());
  }
  return size;
}
}  // namespace

std::optional<camera::FrameSize> StreamBoard::size_of(const CameraId& camera) const {
  auto found = words_.find(camera);
  return found == words_.end() ? std::nullopt : found->second.size;
}

void StreamBoard::note(const StoredEvent& event, Instant now) {
  bool status = event.routing_key.starts_with("stream.status.");
  if (event.topic != event::kStatusTopic || !(status || event.routing_key.starts_with("stream.error."))) return;
  auto payload = json::parse_text(event.payload);
  if (!payload || !payload->is_object()) return;
  const json::object& said = payload->get_object();
  const json::value* version = said.if_contains("lease_version");
  std::string camera = text_of(said, "camera_uuid", kDetailMax);
  if (!id_problem(camera).empty() || version == nullptr || !version->is_int64()) return;
  if (words_.size() >= kMax) words_.clear();
  Word& word = words_[CameraId::trusted(camera)];
  // An error of the old owner says nothing about a new one; after a rotation the same owner soon reports its error
  // again.
  if (version->get_int64() != word.version) word = Word{.delivered = word.delivered, .size = word.size};
  word.version = version->get_int64();
  word.heard = now;
  word.ts = text_of(said, "ts");
  word.shard = text_of(said, "shard_id", kDetailMax);
  if (!status) {
    word.code = text_of(said, "code");
    word.detail = text_of(said, "detail", kDetailMax);
    return;
  }
  if (std::string state = text_of(said, "state"); state != word.state) word.state = state, word.since = now;
  word.fps = number_of(said, "fps");
  word.looked_fps = number_of(said, "looked_fps");
  word.wanted_fps = number_of(said, "wanted_fps");
  if (auto size = size_in(said)) word.size = size;
  // An error of the stream is over with its first picture; one of the model stands in every summary until it works.
  if (word.state == "STREAMING") word.delivered = word.version;
  if (word.state == "STREAMING") word.code = text_of(said, "code"), word.detail = text_of(said, "detail", kDetailMax);
}

bool StreamBoard::delivered(const lease::LeaseRow& row) const {
  auto found = words_.find(row.subject);
  return found != words_.end() && found->second.delivered >= row.grant.n;
}

std::string StreamBoard::shard_of(const lease::LeaseRow& row) const {
  auto found = words_.find(row.subject);
  return found != words_.end() && found->second.version >= row.grant.n ? found->second.shard : std::string();
}

json::value StreamBoard::about(const lease::LeaseRow& row, Instant now) const {
  auto found = words_.find(row.subject);
  // Rotations stay within a tenure: a status since its grant comes from the same owner.
  if (found == words_.end() || found->second.version < row.grant.n || row.released) return nullptr;
  const Word& word = found->second;
  json::object out{{"state", word.state.empty() ? json::value(nullptr) : json::value(word.state)},
                   {"ts", word.ts},
                   {"age_s", seconds(now - word.heard)}};
  if (!word.state.empty()) out["for_s"] = seconds(now - word.since);
  if (word.fps) out["fps"] = *word.fps;
  if (word.looked_fps) out["looked_fps"] = *word.looked_fps;
  if (word.wanted_fps) out["wanted_fps"] = *word.wanted_fps;
  if (word.size) out["width"] = word.size->width, out["height"] = word.size->height;
  if (!word.code.empty()) out["error"] = json::object{{"code", word.code}, {"detail", word.detail}};
  return out;
}

}  // namespace weir::control_plane
