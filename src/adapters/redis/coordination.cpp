#include "weir/redis/coordination.hpp"

#include "client.hpp"
#include "keys.hpp"
#include "scripts.hpp"

#include <algorithm>
#include <charconv>

namespace weir::redis {

namespace {

using Words = std::vector<std::string>;

Words script(std::string_view text, const std::vector<std::string_view>& keys, Words arguments) {
  Words words = {"EVAL", std::string(text), std::to_string(keys.size())};
  words.insert(words.end(), keys.begin(), keys.end());
  for (std::string& each : arguments) words.push_back(std::move(each));
  return words;
}

Error error_of(const Reply& reply) {
  if (reply.text.find("STALEEPOCH") != std::string::npos) return stale_epoch();
  if (reply.text.find("NOEPOCH") != std::string::npos) return no_epoch();
  return unavailable(reply.text);
}

Error unexpected() { return unavailable("Redis replied with another type than this command has"); }

Words words_of(std::int64_t epoch, const std::vector<TableChange>& changes, std::vector<std::string_view>& keys) {
  Words words = {std::to_string(epoch)};
  keys = {kEpochKey};
  for (const TableChange& change : changes) {
    keys.push_back(key_of(change.table));
    std::string key = std::to_string(keys.size());
    if (change.empty_first) words.insert(words.end(), {"empty", key});
    for (const std::string& field : change.remove) words.insert(words.end(), {"remove", key, field});
    for (const auto& [field, value] : change.put) words.insert(words.end(), {"put", key, field, value});
  }
  return words;
}

class RedisCoordination final : public Coordination {
 public:
  RedisCoordination(boost::asio::any_io_executor loop, Config config)
      : detections_max_(std::to_string(config.detections_max)), client_(std::move(loop), std::move(config)) {}

  Async<Nothing> open_epoch(std::int64_t epoch) override {
    return done(script(scripts::kOpen, {kEpochKey}, {std::to_string(epoch)}));
  }
  Async<Nothing> write(std::int64_t epoch, std::vector<TableChange> changes) override {
    std::vector<std::string_view> keys;
    Words words = words_of(epoch, changes, keys);
    return done(script(scripts::kWrite, keys, std::move(words)));
  }
  Async<Nothing> publish(std::int64_t epoch, std::string channel, std::string text) override {
    return done(script(scripts::kPublish, {kEpochKey}, {std::to_string(epoch), channel, text}));
  }
  Async<std::string> deliver(std::int64_t epoch, std::string channel, std::string text) override {
    Words words = script(scripts::kDeliver,
                         {kEpochKey, kDetectionsKey, kDetectionsCountKey},
                         {std::to_string(epoch), channel, text, detections_max_});
    CO_TRY(answer, co_await ask(std::move(words)));
    if (answer.kind != Reply::Kind::text) co_return unexpected();
    co_return std::move(answer.text);
  }

  Async<Nothing> put_slave(std::string slave, std::string record) override {
    return done({"HSET", std::string(key_of(ClusterTable::slaves)), slave, record});
  }
  Async<Nothing> remove_slave(std::string slave) override {
    return done({"HDEL", std::string(key_of(ClusterTable::slaves)), slave});
  }
  Async<Nothing> tell(std::string channel, std::string text) override { return done({"PUBLISH", channel, text}); }

  Async<std::optional<std::int64_t>> epoch() override {
    Words words = {"GET", std::string(kEpochKey)};
    CO_TRY(answer, co_await ask(std::move(words)));
    if (answer.kind == Reply::Kind::nothing) co_return std::optional<std::int64_t>();
    std::int64_t stored = 0;
    const char* end = answer.text.data() + answer.text.size();
    auto [read_to, failed] = std::from_chars(answer.text.data(), end, stored);
    if (failed != std::errc{} || read_to != end) co_return unexpected();
    co_return std::optional(stored);
  }
  Async<SharedTable> table(ClusterTable table) override {
    Words words = {"HGETALL", std::string(key_of(table))};
    CO_TRY(answer, co_await ask(std::move(words)));
    SharedTable out;
    for (size_t n = 0; n + 1 < answer.list.size(); n += 2)
      out.emplace(std::move(answer.list[n].text), std::move(answer.list[n + 1].text));
    co_return out;
  }
  Async<std::optional<std::string>> entry(ClusterTable table, std::string field) override {
    Words words = {"HGET", std::string(key_of(table)), field};
    CO_TRY(answer, co_await ask(std::move(words)));
    if (answer.kind == Reply::Kind::nothing) co_return std::optional<std::string>();
    co_return std::optional(std::move(answer.text));
  }
  Async<DetectionPage> detections_after(std::string id, int limit) override {
    if (!id.empty() && !is_stream_id(id)) co_return bad_stream_id();
    Words words = script(scripts::kAfter, {kDetectionsKey}, {id, std::to_string(std::max(1, limit))});
    CO_TRY(answer, co_await ask(std::move(words)));
    if (answer.list.size() != 3) co_return unexpected();
    DetectionPage page{.gap = answer.list[0].number != 0, .last = std::move(answer.list[1].text)};
    std::vector<Reply>& items = answer.list[2].list;
    for (size_t n = 0; n + 1 < items.size(); n += 2)
      page.items.push_back({std::move(items[n].text), std::move(items[n + 1].text)});
    co_return page;
  }

  std::unique_ptr<Listening> listen(std::vector<std::string> channels,
                                    std::function<void(const Heard&)> each) override {
    return client_.listen(std::move(channels), std::move(each));
  }

 private:
  // A reply, or the error that Redis answered with.
  Async<Reply> ask(Words words) {
    Result<Reply> answer = co_await client_.ask(std::move(words));
    if (answer && answer->kind == Reply::Kind::error) co_return error_of(*answer);
    co_return answer;
  }
  Async<Nothing> done(Words words) {
    Result<Reply> answer = co_await ask(std::move(words));
    if (!answer) co_return answer.error();
    co_return ok();
  }

  const std::string detections_max_;
  Client client_;
};

}  // namespace

std::unique_ptr<Coordination> make_coordination(boost::asio::any_io_executor loop, Config config) {
  return std::make_unique<RedisCoordination>(std::move(loop), std::move(config));
}

}  // namespace weir::redis
