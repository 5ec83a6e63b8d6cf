// For the worker's tests: cameras with sources, detectors and a bus that do what the test says. Threads and time are
// real, so every expectation waits for its condition. Belongs to the test's thread, unless said otherwise.
#pragma once

#include "weir/worker/worker.hpp"

#include "picture_testing.hpp"
#include "publisher_testing.hpp"
#include "run.hpp"
#include "stall.hpp"

#include "weir/worker/publisher_thread.hpp"

#include <gtest/gtest.h>

namespace weir::worker {

using restart::StreamErrorCode;
using test::eventually;

struct FakePacket final : Packet {
  size_t bytes() const override { return 100; }
};

// A camera as the test wants it to be. Any thread.
struct FakeCamera {
  std::atomic<int> dials = 0, closed = 0;
  std::atomic<bool> up = true;          // else refuses
  std::atomic<bool> frozen = false;     // connected, but silent
  std::atomic<bool> stuck = false;      // its library never comes back
  std::atomic<int> stuck_dial = 0;      // nor does it on this one of its connections, the first being 1
  std::atomic<bool> hangs = false;      // so it is now
  std::atomic<bool> looked_up = true;   // else its name's lookup lasts
  std::atomic<int> moving = 1;          // each picture differs from the one before
  std::atomic<int> decoded = 0, alone = 0;
  std::atomic<int> keyframe_every = 5;
  std::atomic<int> no_key_before = 0;   // the number of a packet
  std::atomic<int> pace_ms = 20;        // from packet to packet by the clock; always 20 ms by the stream's time
  std::atomic<bool> fields = false;     // a key packet is half a picture
  std::atomic<bool> late_size = false;  // the dial does not tell the size
  std::atomic<bool> damaged = false;    // nothing of it can be decoded
  std::atomic<bool> reordered = false;  // I P B B: each B-frame is shown before the P-frame it arrives after
  std::atomic<int> width = 64, height = 48;
  std::vector<std::optional<StreamErrorCode>> refusals = {};  // of the first dials, before there is a worker
};

class FakeVideo final : public VideoSource {
 public:
  explicit FakeVideo(std::shared_ptr<FakeCamera> camera) : camera_(std::move(camera)) {}
  ~FakeVideo() override { ++camera_->closed; }
  Result<StreamFacts> open() override {
    auto dial = static_cast<size_t>(camera_->dials++);
    dial_ = static_cast<int>(dial) + 1;
    for (; !camera_->looked_up; camera_->hangs = true) test::between_looks();
    if (stopped_) return interrupted();
    if (dial < camera_->refusals.size() && camera_->refusals[dial])
      return stream_failure(*camera_->refusals[dial], "refused");
    if (!camera_->up) return stream_failure(StreamErrorCode::tcp_refused, "connection refused");
    StreamFacts known = facts();
    if (camera_->late_size) known.width = known.height = 0;
    return known;
  }
  // 50 pictures a second.
  Result<PacketPtr> read() override {
    for (; camera_->stuck || camera_->stuck_dial == dial_; camera_->hangs = true) test::between_looks();
    Instant due = boot_now() + std::chrono::milliseconds(camera_->pace_ms);
    while (boot_now() < due || camera_->frozen) {
      if (stopped_) return interrupted();
      if (!camera_->up) return stream_failure(StreamErrorCode::rtsp_protocol, "the camera ended the stream");
      test::between_looks();
    }
    auto packet = std::make_shared<FakePacket>();
    packet->number = next_++;
    std::int64_t number = packet->number, every = camera_->keyframe_every;
    packet->key = number % every == 0 && (number == 0 || number >= camera_->no_key_before);
    packet->stream_time = shown_as(number) * Duration(20ms);
    packet->received = boot_now();
    packet->captured = wall_now();
    return PacketPtr(packet);
  }
  Result<std::vector<PicturePtr>> decode(const PacketPtr& packet) override {
    if (camera_->damaged) return stream_failure(StreamErrorCode::decode_error, "nothing decodable");
    ++camera_->decoded;
    keyed_ = keyed_ || packet->key;
    if (!keyed_) return std::vector<PicturePtr>();
    PicturePtr made = picture_of(*packet);
    if (camera_->reordered && packet->number % 3 == 1) std::swap(made, held_);
    return made ? std::vector{made} : std::vector<PicturePtr>();
  }
  Result<PicturePtr> decode_alone(const PacketPtr& packet) override {
    ++camera_->alone;
    keyed_ = false;
    if (!camera_->fields) return picture_of(*packet);
    if (++blanks_ >= 3) return stream_failure(StreamErrorCode::decode_error, "nothing decodable");
    return PicturePtr();
  }
  void restart_decoder() override { keyed_ = false; }
  void close() override {}
  void interrupt() override { stopped_ = true; }
  StreamFacts facts() const override {
    return {.codec = "h264", .width = camera_->width, .height = camera_->height, .fps = 50};
  }

 private:
  static Error interrupted() { return Error{Errc::unavailable, "interrupted", "the source was told to stop"}; }
  // Packets 1, 2, 3 are shown as 3, 1, 2.
  std::int64_t shown_as(std::int64_t number) const {
    if (!camera_->reordered || number == 0) return number;
    return number % 3 == 1 ? number + 2 : number - 1;
  }
  PicturePtr picture_of(const Packet& packet) {
    bool bright = camera_->moving != 0 && packet.number % 2 == 0;
    auto made = std::make_shared<GreyPicture>(camera_->width, camera_->height, 100);
    if (bright) made->paint(0, 0, 40, 48, 220);
    made->number = packet.number;
    made->stream_time = packet.stream_time;
    made->received = packet.received;
    made->captured = packet.captured;
    return made;
  }
  std::shared_ptr<FakeCamera> camera_;
  std::atomic<bool> stopped_ = false;
  int dial_ = 0;
  std::int64_t next_ = 0;
  bool keyed_ = false;  // before a key packet, nothing comes out of the running decoder
  int blanks_ = 0;
  PicturePtr held_;  // the P-frame that waits for its B-frames
};

// Sees one person in every picture, when the test lets it, and notes what it looked at.
struct Eyes {
  struct Note {
    std::int64_t number;
    int width, region_x;
  };
  std::vector<Note> notes() {
    std::lock_guard guard(mutex);
    return noted;
  }
  std::atomic<int> takes_ms = 0;        // at least
  std::atomic<bool> blocked = false;
  std::atomic<bool> broken = false;     // the model fails
  std::atomic<bool> looking = false;    // it was held up in a look
  std::atomic<int> looks = 0;
  std::atomic<int> region_x = 0, region_width = 0;  // of the last look
  std::mutex mutex;
  std::vector<Note> noted;
};
class FakeDetector final : public Detector {
 public:
  explicit FakeDetector(std::shared_ptr<Eyes> eyes) : eyes_(std::move(eyes)) {}
  Result<std::vector<std::vector<Detection>>> detect(std::span<const Look> looks) override {
    Instant until = boot_now() + std::chrono::milliseconds(eyes_->takes_ms);
    for (; eyes_->blocked || boot_now() < until; eyes_->looking = true) test::between_looks();
    if (eyes_->broken) return stream_failure(StreamErrorCode::model_error, "the model fails");
    ++eyes_->looks;
    eyes_->region_x = looks.back().region.x;
    eyes_->region_width = looks.back().region.width;
    std::lock_guard guard(eyes_->mutex);
    for (const Look& look : looks) eyes_->noted.push_back({look.picture->number, look.picture->width(), look.region.x});
    return std::vector<std::vector<Detection>>(looks.size(), {{"person", 0.9, {10, 10, 30, 40}}});
  }

 private:
  std::shared_ptr<Eyes> eyes_;
};

class WorkerTest : public ::testing::Test {
 protected:
  WorkerTest() : publisher_([this](asio::io_context&) { return make_bus(); }, std::make_unique<FakeSpool>(disk_)) {}
  ~WorkerTest() override {
    eyes_->blocked = false;
    if (worker_) {
      EXPECT_TRUE(test::run(io_, worker_->drain(clock_.now() + 10s)));
    }
    end(publisher_.publisher());
    worker_.reset();
  }

  void make(std::vector<Source> sources, WorkerSettings settings = {}) {
    ShardConfig shard{.runner = RunnerId::trusted("r")};
    shard.sources = std::move(sources);
    worker_ = std::make_unique<Worker>(
        clock_, metrics_, publisher_.publisher(), shard, settings,
        [this](const DialRequest& request) -> Result<std::unique_ptr<VideoSource>> {
          return std::unique_ptr<VideoSource>(new FakeVideo(camera(request.url.reveal())));
        },
        [this](const camera::Model& model) -> Result<std::unique_ptr<Detector>> {
          if (model.name == "missing") return stream_failure(StreamErrorCode::model_error, "no such model");
          return std::unique_ptr<Detector>(new FakeDetector(eyes_));
        });
    for (const auto& [name, fake] : cameras_) grant(name.substr(name.rfind('/') + 1));
  }
  std::shared_ptr<FakeCamera> camera(const std::string& url) {
    std::lock_guard guard(mutex_);
    auto& found = cameras_[url];
    if (!found) found = std::make_shared<FakeCamera>();
    return found;
  }
  std::shared_ptr<FakeCamera> fake(const std::string& id) { return camera("rtsp://h/" + id); }
  Source source(const std::string& id, const std::string& model = "") {
    fake(id);
    Source made;
    made.config.camera = CameraId::trusted(id);
    made.config.tenant = TenantId::trusted("t");
    made.config.site = SiteId::trusted("s");
    made.config.rtsp_url = Secret("rtsp://h/" + id);
    made.config.model.name = model;
    made.config.max_fps = 100;
    made.config.motion_gating.min_area_px = 100;
    return made;
  }
  void grant(const std::string& id, Duration valid = 1h) {
    worker_->grant({.camera = CameraId::trusted(id),
                    .version = {++versions_},
                    .tenure = {BootId::trusted("b"), {1}},
                    .valid_until = clock_.now() + valid});
  }
  json::object about(const std::string& id) {
    json::object state = worker_->state();
    for (auto& each : state["cameras"].as_array())
      if (each.at("camera_uuid").as_string() == id) return each.as_object();
    return {};
  }
  std::int64_t count(const std::string& id, const char* field) {
    json::object found = about(id);
    return found.empty() ? -1 : found[field].as_int64();
  }
  bool is(const std::string& id, std::string_view state) {
    json::object found = about(id);
    return !found.empty() && found["state"].as_string() == state;
  }
  // What the bus has, by routing key.
  int heard(std::string_view key, std::string_view text = "") {
    std::lock_guard guard(mutex_);
    return static_cast<int>(std::ranges::count_if(heard_, [&](const event::Event& e) {
      return e.routing_key == key && e.payload.find(text) != std::string::npos;
    }));
  }
  json::value payload(std::string_view key, int nth) {
    std::lock_guard guard(mutex_);
    for (const event::Event& e : heard_)
      if (e.routing_key == key && nth-- == 0) return *json::parse_text(e.payload);
    return nullptr;
  }

 private:
  // Hands on what the fenced fake would accept; it runs on the publisher's thread.
  class Bus final : public EventBus {
   public:
    explicit Bus(WorkerTest& test) : test_(test) {}
    asio::awaitable<Result<std::vector<Confirmation>>> publish(std::vector<event::Event> events) override {
      for (; test_.bus_held_; test_.bus_waited_ = true) co_await test_.clock_.wait(5ms);
      std::lock_guard guard(test_.mutex_);
      for (event::Event& event : events) test_.heard_.push_back(std::move(event));
      co_return std::vector<Confirmation>(events.size(), Confirmation::accepted);
    }
    asio::awaitable<Status> subscribe(Subscription, std::function<bool(const DeliveredEvent&)>) override {
      co_return ok();
    }

   private:
    WorkerTest& test_;
  };
  std::unique_ptr<EventBus> make_bus() { return std::make_unique<Bus>(*this); }
  void end(Publisher& publisher) {
    auto flushed = [](Publisher& p, Instant until) -> asio::awaitable<int> {
      co_await p.flush_and_stop(until);
      co_return 0;
    };
    test::run(io_, flushed(publisher, clock_.now() + 5s));
  }

 protected:
  asio::io_context io_{1};
  RealClock clock_;
  net::Metrics metrics_;
  FakeDisk disk_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<FakeCamera>> cameras_;
  std::vector<event::Event> heard_;
  std::atomic<bool> bus_held_ = false, bus_waited_ = false;
  std::shared_ptr<Eyes> eyes_ = std::make_shared<Eyes>();
  std::int64_t versions_ = 0;
  PublisherThread publisher_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace weir::worker
