// A record: one event as it lies in a segment: length, CRC-32C of the body, body. Pure functions.
#pragma once

#include "weir/ports/spool.hpp"

#include <string_view>

namespace weir::spool {

inline constexpr size_t kHeadBytes = 8;
inline constexpr size_t kBodyBytesMax = size_t{1} << 20;

std::uint32_t crc32c(std::string_view bytes);

// The record, or "" for an event that is too large to be kept.
std::string encode(const event::Event& event);

// The whole length of the record whose first bytes are `head` (at least kHeadBytes); 0 if there can be none.
size_t record_bytes(std::string_view head);
// `record` holds exactly one record; none if its checksum or its form is wrong.
std::optional<event::Event> decode(std::string_view record);

}  // namespace weir::spool
