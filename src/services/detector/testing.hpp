// For the tests of a detection worker: cameras and models that do what the test says. One thread.
#pragma once

#include "weir/detector/roster.hpp"

#include <deque>

namespace weir::detector::testing {

namespace asio = boost::asio;

class Still final : public Picture {
 public:
  explicit Still(std::string jpeg, WallTime at = {}) : jpeg_(std::move(jpeg)) { captured = at; }
  int width() const override { return 64; }
  int height() const override { return 48; }
  const std::uint8_t* luma() const override { return nullptr; }
  int luma_stride() const override { return 64; }
  bool to_rgb(Region, int, int, std::span<std::uint8_t>) const override { return false; }
  std::string to_jpeg(int, int) const override { return jpeg_; }

 private:
  const std::string jpeg_;
};

class FakeCameras final : public Cameras {
 public:
  void add(link::Source source) override {
    std::string id = source.config.camera.str();
    bool changes = running.contains(id) && running.at(id).same_dial(source);
    happened.push_back((changes ? "change " : "add ") + id);
    running.insert_or_assign(id, std::move(source));
  }
  void remove(const CameraId& camera) override {
    happened.push_back("remove " + camera.str());
    running.erase(camera.str());
  }
  std::set<CameraId> online() const override {
    std::set<CameraId> out;
    for (const auto& [id, source] : running)
      if (!dark.contains(id)) out.insert(CameraId::trusted(id));
    return out;
  }
  PicturePtr latest(const CameraId& camera) const override {
    auto found = pictures.find(camera.str());
    return found == pictures.end() ? nullptr : found->second;
  }
  std::map<std::string, link::Source> running;
  std::set<std::string> dark;  // running, but without pictures
  std::map<std::string, PicturePtr> pictures;
  std::vector<std::string> happened;
};

class FakeModels final : public Models {
 public:
  explicit FakeModels(Clock& clock) : clock_(clock) {}
  Async<StoredModel> get(Secret url) override {
    asked.push_back(url.reveal());
    co_await clock_.wait(takes);
    if (!failures.empty()) {
      Error failure = failures.front();
      failures.pop_front();
      co_return failure;
    }
    auto found = files.find(url.reveal());
    if (found == files.end()) co_return Error{Errc::forbidden, "signature_expired", "the link has expired"};
    co_return found->second;
  }
  std::map<std::string, StoredModel> files;  // by URL
  std::deque<Error> failures;                // of the next questions
  std::vector<std::string> asked;
  Duration takes = 50ms;

 private:
  Clock& clock_;
};

inline cluster::Subscribe wanted(const std::string& id, const std::string& model_url = "http://plane/7") {
  cluster::Subscribe out;
  out.subscription = *cluster::Identifier::parse(id);
  out.rtsp_url = Secret("rtsp://user:secret@recorder.example/" + out.subscription.camera);
  out.model_url = Secret(model_url);
  out.model_name = "cars";
  out.model_id = 7;
  return out;
}

inline StoredModel model(const std::string& sha256) {
  StoredModel out;
  out.sha256 = sha256;
  out.facts.detector = "tflite";
  return out;
}

}  // namespace weir::detector::testing
