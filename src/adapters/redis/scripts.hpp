// Scripts: what Redis does in one step. Private to this folder. Constants; any thread.
//
// Each begins with the fence: the epoch that is given must be the one that is stored. The answers NOEPOCH and
// STALEEPOCH are errors of the port. Keys come in KEYS, everything else in ARGV.
#pragma once

#include <string>
#include <string_view>

namespace weir::redis::scripts {

// KEYS: epoch. ARGV: epoch.
inline constexpr std::string_view kOpen = R"(
local stored = redis.call('GET', KEYS[1])
if stored and tonumber(stored) > tonumber(ARGV[1]) then return redis.error_reply('STALEEPOCH higher') end
redis.call('SET', KEYS[1], ARGV[1])
return 1)";

inline constexpr std::string_view kFence = R"(
local stored = redis.call('GET', KEYS[1])
if not stored or tonumber(stored) < tonumber(ARGV[1]) then return redis.error_reply('NOEPOCH not open') end
if stored ~= ARGV[1] then return redis.error_reply('STALEEPOCH higher') end
)";

// KEYS: epoch, tables. ARGV: epoch, then operations: "empty" table, "remove" table field, "put" table field value.
inline const std::string kWrite = std::string(kFence) + R"(
local at = 2
while at <= #ARGV do
  local key = KEYS[tonumber(ARGV[at + 1])]
  if ARGV[at] == 'empty' then
    redis.call('DEL', key)
    at = at + 2
  elseif ARGV[at] == 'remove' then
    redis.call('HDEL', key, ARGV[at + 2])
    at = at + 3
  else
    redis.call('HSET', key, ARGV[at + 2], ARGV[at + 3])
    at = at + 4
  end
end
return 1)";

// KEYS: epoch. ARGV: epoch, channel, text.
inline const std::string kPublish = std::string(kFence) + R"(
return redis.call('PUBLISH', ARGV[2], ARGV[3]))";

// KEYS: epoch, detections, their count. ARGV: epoch, channel, text, how many are kept.
inline const std::string kDeliver = std::string(kFence) + R"(
local number = redis.call('INCR', KEYS[3])
local id = redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[4], '*', 'number', number, 'text', ARGV[3])
redis.call('PUBLISH', ARGV[2], '{"streamId":"' .. id .. '",' .. string.sub(ARGV[3], 2))
return id)";

// KEYS: detections. ARGV: id, limit. Answers gap, last, items.
// The reader has missed nothing if what it named is still kept. Before all detections is the place of a reader that has
// none yet: it has missed something if the oldest that is kept is not the first.
inline constexpr std::string_view kAfter = R"(
local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local newest_id = newest[1] and newest[1][1] or '0-0'
if ARGV[1] == '' then return {0, newest_id, {}} end
local gap = 0
if ARGV[1] == '0-0' then
  local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)
  if oldest[1] and oldest[1][2][2] ~= '1' then gap = 1 end
elseif #redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1]) == 0 then
  gap = 1
end
local from = gap == 1 and '0-0' or ARGV[1]
local read = redis.call('XREAD', 'COUNT', ARGV[2], 'STREAMS', KEYS[1], from)
local items = read and read[1][2] or {}
local out = {}
for n = 1, #items do
  out[#out + 1] = items[n][1]
  out[#out + 1] = items[n][2][4]
end
return {gap, #items > 0 and items[#items][1] or from, out})";

}  // namespace weir::redis::scripts
