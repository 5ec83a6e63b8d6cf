// For this folder's tests: two ends of a forward without any network, which do what the test says.
// A script is written before its end is opened; what happened may be read from any thread.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/egress/forwarder.hpp"
#include "weir/forward/failure.hpp"

#include <atomic>

namespace weir::egress::testing {

struct FakeFormat final : CopyFormat {
  explicit FakeFormat(int which) : number(which) {}
  bool same_as(const CopyFormat& other) const override {
    return number == static_cast<const FakeFormat&>(other).number;
  }
  const int number;
};

inline CopyPacketPtr packet(forward::Track track, bool key, Duration pts, size_t bytes = 100, Instant arrived = {}) {
  auto made = std::make_unique<CopyPacket>();
  made->track = track;
  made->key = key;
  made->pts = pts;
  made->bytes = bytes;
  made->arrived = arrived;
  return made;
}

// Everything that both kinds of ends share with the test.
struct Stage {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Error> input_refusals, output_refusals;  // the first tries fail with these
  int format = 1;
  std::atomic<bool> room = true;                      // for another packet at the destination
  std::atomic<int> inputs = 0, outputs = 0, resets = 0, written = 0, goodbyes = 0, read = 0;
  std::optional<Error> input_ends, output_ends;       // what the next call of the end that is open answers
  bool input_hangs = false;                           // `open` waits until it is interrupted

  template <class Condition>
  bool wait(const Condition& condition) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(20), condition);
  }
  template <class Change>
  void set(const Change& change) {
    std::lock_guard lock(mutex);
    change();
    changed.notify_all();
  }
};

class FakeInput final : public CopyInput {
 public:
  explicit FakeInput(Stage& stage) : stage_(stage) {}
  Result<CopyFacts> open(Duration) override {
    std::unique_lock lock(stage_.mutex);
    ++stage_.inputs;
    stage_.changed.notify_all();
    if (stage_.input_hangs) {
      stage_.changed.wait(lock, [&] { return interrupted_; });
      return Error{Errc::unavailable, "interrupted", ""};
    }
    if (!stage_.input_refusals.empty()) {
      Error error = stage_.input_refusals.front();
      stage_.input_refusals.pop_front();
      return error;
    }
    return CopyFacts{.format = std::make_shared<FakeFormat>(stage_.format), .video = "h264", .audio = "", .peer = ""};
  }
  Result<CopyPacketPtr> read() override {
    if (meanwhile_) meanwhile_();
    std::unique_lock lock(stage_.mutex);
    stage_.changed.wait_for(lock, std::chrono::milliseconds(2), [&] { return interrupted_; });
    if (interrupted_) return Error{Errc::unavailable, "interrupted", ""};
    if (stage_.input_ends) return *std::exchange(stage_.input_ends, std::nullopt);
    ++stage_.read;
    stage_.changed.notify_all();
    return packet(forward::Track::video, true, (pts_ += 40) * 1ms, 100, boot_now());
  }
  void set_meanwhile(std::function<void()> meanwhile) override { meanwhile_ = std::move(meanwhile); }
  void interrupt() override {
    stage_.set([&] { interrupted_ = true; });
  }

 private:
  Stage& stage_;
  std::function<void()> meanwhile_;
  bool interrupted_ = false;
  int pts_ = 0;
};

class FakeOutput final : public CopyOutput {
 public:
  explicit FakeOutput(Stage& stage) : stage_(stage) {}
  Status open(const CopyFormat&) override {
    std::lock_guard lock(stage_.mutex);
    ++stage_.outputs;
    stage_.changed.notify_all();
    if (stage_.output_refusals.empty()) return ok();
    Error error = stage_.output_refusals.front();
    stage_.output_refusals.pop_front();
    return error;
  }
  Status write(CopyPacket&, const forward::Stamp&) override {
    std::lock_guard lock(stage_.mutex);
    if (gone_) return Error{Errc::unavailable, "interrupted", ""};
    if (stage_.output_ends) return *std::exchange(stage_.output_ends, std::nullopt);
    ++stage_.written;
    ++bytes_;
    stage_.changed.notify_all();
    return ok();
  }
  bool has_room(size_t) override { return stage_.room; }
  void gather(bool) override {}
  Result<forward::Flow::State> look() override { return forward::Flow::State::flowing; }
  std::uint64_t media_bytes() const override { return bytes_; }
  void close() override {
    stage_.set([&] { ++stage_.goodbyes; });
  }
  void interrupt() override {
    stage_.set([&] { gone_ = true; });
  }
  void reset() override {
    stage_.set([&] {
      gone_ = true;
      ++stage_.resets;
    });
  }

 private:
  Stage& stage_;
  bool gone_ = false;
  std::uint64_t bytes_ = 0;
};

}  // namespace weir::egress::testing
