#include "record.hpp"

#include <boost/crc.hpp>

#include <cstring>

namespace weir::spool {

namespace {

template <class T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string& to, const std::string& text) {
  put(to, static_cast<std::uint32_t>(text.size()));
  to += text;
}

template <class T>
bool take(std::string_view& from, T& value) {
  if (from.size() < sizeof value) return false;
  std::memcpy(&value, from.data(), sizeof value);
  from.remove_prefix(sizeof value);
  return true;
}
bool take_text(std::string_view& from, std::string& text) {
  std::uint32_t bytes = 0;
  if (!take(from, bytes) || bytes > from.size()) return false;
  text = from.substr(0, bytes);
  from.remove_prefix(bytes);
  return true;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

std::string encode(const event::Event& event) {
  std::string out(kHeadBytes, '\0');
  put(out, event.kind);
  put(out, std::int64_t{event.captured.time_since_epoch().count()});
  for (const std::string* text : {&event.topic, &event.routing_key, &event.event_id, &event.payload})
    put_text(out, *text);
  if (out.size() - kHeadBytes > kBodyBytesMax) return {};
  std::string_view body = std::string_view(out).substr(kHeadBytes);
  std::uint32_t head[2] = {static_cast<std::uint32_t>(body.size()), crc32c(body)};
  std::memcpy(out.data(), head, sizeof head);
  return out;
}

size_t record_bytes(std::string_view head) {
  std::uint32_t body = 0;
  // A file system may leave zeros where a write was cut off: an empty body is none.
  if (!take(head, body) || body == 0 || body > kBodyBytesMax) return 0;
  return kHeadBytes + body;
}

std::optional<event::Event> decode(std::string_view record) {
  std::uint32_t bytes = 0, crc = 0;
  if (!take(record, bytes) || !take(record, crc) || bytes != record.size() || crc != crc32c(record)) return {};
  event::Event event;
  std::int64_t captured = 0;
  bool whole = take(record, event.kind) && take(record, captured) && take_text(record, event.topic) &&
               take_text(record, event.routing_key) && take_text(record, event.event_id) &&
               take_text(record, event.payload) && record.empty() && event.kind <= event::Kind::summary;
  if (!whole) return {};
  event.captured = WallTime(Duration(captured));
  return event;
}

}  // namespace weir::spool
