// StreamRig: what tests of published streams share: the house of MediaMTX and orchestrator, and what they ask of it.
// Test thread only.
#pragma once

#include "fleet.hpp"
#include "stall.hpp"
#include "stream_house.hpp"

#include <gtest/gtest.h>

namespace weir::test {

class StreamRig : public ::testing::Test {
 protected:
  static constexpr const char* kPassthrough = "demo: {mode: passthrough}\n";
  static std::string in(const std::string& id) { return "live/" + id + "/in"; }
  static std::string out(const std::string& id) { return "live/" + id + "/out"; }

  void SetUp() override {
    if (std::string why = stream_house_needs(); !why.empty()) GTEST_SKIP() << why;
  }
  void open(StreamHouseOptions options = {.streams = kPassthrough}) {
    house_ = std::make_unique<StreamHouse>(std::move(options));
  }
  // For a failing test.
  std::string report() const { return house_->log() + house_->child_logs() + house_->hub().log(); }
  bool runs(const std::string& id, Duration limit = 20s) {
    return eventually(limit, [&] { return house_->state(id) == "running" && house_->hub().ready(out(id), 1s); });
  }
  // The connection that publishes the path: another one is another id.
  std::string source_of(const std::string& path) {
    auto found = house_->hub().path(path);
    return found ? found->source_id : "";
  }
  std::string sender(const std::string& id) { return source_of(out(id)); }
  // A field of the stream's worker or forwarder, as text.
  std::string child(const std::string& id, std::string_view role, std::string_view field) {
    boost::json::object view = house_->stream(id);
    if (view.empty()) return "";
    const boost::json::value& value = view.at(role).as_object().at(field);
    return value.is_string() ? std::string(value.get_string()) : boost::json::serialize(value);
  }
  std::unique_ptr<StreamHouse> house_;
};

}  // namespace weir::test
