#include "weir/event/routing.hpp"

#include <fmt/format.h>

namespace weir::event {

namespace {

// FNV-1a: the same on every machine and in every version.
std::uint64_t hash(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (unsigned char c : text) h = (h ^ c) * 0x100000001b3u;
  return h;
}

std::string key(std::string_view family, const Place& place) {
  return fmt::format("{}.{}.{}.{}", family, routing_word(place.tenant.str()), routing_word(place.site.str()),
                     routing_word(place.camera.str()));
}

}  // namespace

std::string routing_word(std::string_view id) {
  std::string word(id);
  if (word.size() > kWordBytesMax) {
    std::string tail = fmt::format("-{:016x}", hash(id));
    size_t end = kWordBytesMax - tail.size();
    while (end > 0 && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80) --end;  // between two characters
    word = word.substr(0, end) + tail;
  }
  for (char& c : word) {
    auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7F || c == '.' || c == '*' || c == '#') c = '_';
  }
  return word.empty() ? "_" : word;
}

std::string detections_key(const Place& place) { return key("detections", place); }
std::string status_key(const Place& place) { return key("stream.status", place); }
std::string error_key(const Place& place) { return key("stream.error", place); }
std::string lease_key(std::string_view what, const Place& place) { return key(fmt::format("lease.{}", what), place); }
std::string camera_key(std::string_view what, const Place& place) { return key(fmt::format("camera.{}", what), place); }
std::string publication_key(std::string_view what, const Place& place) {
  return key(fmt::format("publication.{}", what), place);
}
std::string desire_key(std::string_view what, const TenantId& tenant, std::string_view id) {
  return fmt::format("{}.{}.{}", what, routing_word(tenant.str()), routing_word(id));
}
std::string heartbeat_key(const RunnerId& runner) { return "runner.heartbeat." + routing_word(runner.str()); }

}  // namespace weir::event
