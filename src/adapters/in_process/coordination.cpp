#include "weir/in_process/coordination.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <deque>
#include <set>

namespace weir::in_process {

namespace {

namespace asio = boost::asio;

// A listener with what waits for it. It is shared with the posts that are under way.
struct Ear {
  std::set<std::string> channels;
  std::function<void(const Heard&)> each;
  std::deque<Heard> waiting = {};
  bool posted = false, closed = false;
};

class Ears {
 public:
  Ears(asio::any_io_executor loop, size_t heard_max) : loop_(std::move(loop)), heard_max_(heard_max) {}

  std::shared_ptr<Ear> add(std::vector<std::string> channels, std::function<void(const Heard&)> each) {
    auto ear = std::make_shared<Ear>(Ear{{channels.begin(), channels.end()}, std::move(each)});
    ears_.push_back(ear);
    hear(ear, {.begun = true});
    return ear;
  }
  void publish(const std::string& channel, const std::string& text) {
    std::erase_if(ears_, [](const auto& ear) { return ear.expired(); });
    for (const std::weak_ptr<Ear>& each : ears_)
      if (auto ear = each.lock(); ear->channels.contains(channel)) hear(ear, {false, channel, text});
  }

 private:
  void hear(const std::shared_ptr<Ear>& ear, Heard heard) {
    if (ear->waiting.size() >= heard_max_) {
      ear->waiting.clear();
      heard = {.begun = true};
    }
    ear->waiting.push_back(std::move(heard));
    if (std::exchange(ear->posted, true)) return;
    asio::post(loop_, [ear] {
      ear->posted = false;
      for (auto heard_now = std::exchange(ear->waiting, {}); !heard_now.empty() && !ear->closed; heard_now.pop_front())
        ear->each(heard_now.front());
    });
  }

  const asio::any_io_executor loop_;
  const size_t heard_max_;
  std::vector<std::weak_ptr<Ear>> ears_;
};

class OpenEar final : public Listening {
 public:
  explicit OpenEar(std::shared_ptr<Ear> ear) : ear_(std::move(ear)) {}
  ~OpenEar() override { ear_->closed = true; }

 private:
  const std::shared_ptr<Ear> ear_;
};

class InProcessCoordination final : public Coordination {
 public:
  InProcessCoordination(asio::any_io_executor loop, Limits limits)
      : limits_(limits), ears_(std::move(loop), limits.heard_max) {}

  Async<Nothing> open_epoch(std::int64_t epoch) override {
    if (epoch_ && *epoch_ > epoch) co_return stale_epoch();
    epoch_ = epoch;
    co_return ok();
  }
  Async<Nothing> write(std::int64_t epoch, std::vector<TableChange> changes) override {
    Status open = fence(epoch);
    if (!open) co_return open;
    for (TableChange& change : changes) {
      SharedTable& table = tables_[change.table];
      if (change.empty_first) table.clear();
      for (const std::string& field : change.remove) table.erase(field);
      for (auto& [field, value] : change.put) table[field] = std::move(value);
    }
    co_return ok();
  }
  Async<Nothing> publish(std::int64_t epoch, std::string channel, std::string text) override {
    Status open = fence(epoch);
    if (open) ears_.publish(channel, text);
    co_return open;
  }
  Async<std::string> deliver(std::int64_t epoch, std::string channel, std::string text) override {
    Status open = fence(epoch);
    if (!open) co_return open.error();
    std::string id = id_of(++delivered_);
    ears_.publish(channel, with_stream_id(id, text));
    kept_.push_back(std::move(text));
    if (kept_.size() > limits_.detections_max) kept_.pop_front();
    co_return id;
  }

  Async<Nothing> put_slave(std::string slave, std::string record) override {
    tables_[ClusterTable::slaves][slave] = std::move(record);
    co_return ok();
  }
  Async<Nothing> remove_slave(std::string slave) override {
    tables_[ClusterTable::slaves].erase(slave);
    co_return ok();
  }
  Async<Nothing> tell(std::string channel, std::string text) override {
    ears_.publish(channel, text);
    co_return ok();
  }

  Async<std::optional<std::int64_t>> epoch() override { co_return epoch_; }
  Async<SharedTable> table(ClusterTable table) override { co_return tables_[table]; }
  Async<std::optional<std::string>> entry(ClusterTable table, std::string field) override {
    const SharedTable& all = tables_[table];
    auto found = all.find(field);
    co_return found == all.end() ? std::nullopt : std::optional(found->second);
  }
  Async<DetectionPage> detections_after(std::string id, int limit) override {
    if (id.empty()) co_return DetectionPage{.last = id_of(delivered_)};
    if (!is_stream_id(id)) co_return bad_stream_id();
    std::int64_t oldest = delivered_ - static_cast<std::int64_t>(kept_.size()) + 1;
    std::int64_t after = number_of(id);
    // What an id names that was never given out, or is no longer kept, says nothing about what followed it.
    bool known = id == id_of(after) && (after == 0 ? oldest == 1 : after >= oldest && after <= delivered_);
    DetectionPage page{.gap = !known, .last = id};
    if (page.gap) page.last = id_of(oldest - 1);
    for (std::int64_t n = known ? after + 1 : oldest; n <= delivered_ && std::ssize(page.items) < std::max(1, limit); ++n) {
      page.items.push_back({id_of(n), kept_[static_cast<size_t>(n - oldest)]});
      page.last = id_of(n);
    }
    co_return page;
  }

  std::unique_ptr<Listening> listen(std::vector<std::string> channels,
                                    std::function<void(const Heard&)> each) override {
    return std::make_unique<OpenEar>(ears_.add(std::move(channels), std::move(each)));
  }

 private:
  Status fence(std::int64_t epoch) const {
    if (!epoch_ || *epoch_ < epoch) return no_epoch();
    return *epoch_ == epoch ? ok() : stale_epoch();
  }
  // 0 stands for the place before all detections.
  std::string id_of(std::int64_t n) const { return fmt::format("{}-0", n == 0 ? 0 : limits_.ids_above + n); }
  std::int64_t number_of(const std::string& id) const {
    std::int64_t written = std::strtoll(id.c_str(), nullptr, 10);
    return written == 0 ? 0 : written - limits_.ids_above;
  }

  const Limits limits_;
  Ears ears_;
  std::optional<std::int64_t> epoch_;
  std::map<ClusterTable, SharedTable> tables_;
  std::deque<std::string> kept_;  // the newest has the number `delivered_`
  std::int64_t delivered_ = 0;
};

}  // namespace

std::unique_ptr<Coordination> make_coordination(boost::asio::any_io_executor loop, Limits limits) {
  return std::make_unique<InProcessCoordination>(std::move(loop), limits);
}

}  // namespace weir::in_process
