#include "weir/camera/advice.hpp"

#include <gtest/gtest.h>

namespace weir::camera {
namespace {

const std::vector<std::string> kLabels = {"bus", "car", "cat", "fire hydrant", "motorcycle", "person", "stop sign"};

Config with_zone(std::vector<Point> polygon, std::string name = "") {
  Config config;
  config.zones.push_back({.zone_id = 7, .name = std::move(name), .polygon = std::move(polygon)});
  return config;
}

std::vector<Point> box(double x1, double y1, double x2, double y2) { return {{x1, y1}, {x2, y1}, {x2, y2}, {x1, y2}}; }

// "code field" of each warning.
std::vector<std::string> given(const std::vector<Warning>& warnings) {
  std::vector<std::string> out;
  for (const Warning& each : warnings) out.push_back(each.code + " " + each.field);
  return out;
}

struct ZoneCase {
  std::vector<Point> polygon;
  std::optional<FrameSize> configured, stream;
  const char* code;  // "" none
};

TEST(Advice, Zones) {
  const FrameSize hd{1280, 720}, small{320, 240}, unit{1, 1};
  const ZoneCase cases[] = {
      {box(100, 100, 700, 500), {}, {}, ""},
      {box(100, 100, 700, 500), {}, hd, ""},
      {box(0.1, 0.1, 0.9, 0.5), {}, {}, "zone_relative"},
      {box(0, 0, 1, 1), {}, hd, "zone_relative"},
      {box(0, 0, 1, 1), hd, small, "zone_relative"},
      {box(0.1, 0.1, 0.9, 0.5), unit, hd, ""},  // a frame of one by one pixel is how shares are written on purpose
      {box(200, 200, 203, 204), {}, {}, "zone_tiny"},
      {box(200, 200, 203, 204), {}, hd, "zone_tiny"},
      {box(200, 200, 220, 220), {}, hd, ""},
      {box(20, 20, 29, 29), {}, small, ""},        // a tenth of a per cent of a small picture
      {box(2, 2, 8, 8), FrameSize{20, 20}, hd, ""},  // a large part of the picture, in coarse units
      {box(2000, 100, 2600, 400), {}, {}, ""},     // nobody knows the picture yet
      {box(2000, 100, 2600, 400), {}, hd, "zone_outside"},
      {box(100, 720, 300, 900), {}, hd, "zone_outside"},
      {box(2000, 100, 2600, 400), FrameSize{3840, 2160}, hd, ""},  // drawn for the configured frame
      {box(0, 0, 1300, 730), {}, hd, ""},           // a little over the edge
      {box(1000, 500, 1900, 1000), {}, hd, "zone_partly_outside"},
  };
  for (const ZoneCase& each : cases) {
    Config config = with_zone(each.polygon);
    config.frame_size = each.configured;
    std::vector<std::string> expected;
    if (*each.code != '\0') expected.push_back(std::string(each.code) + " zones[0].polygon");
    EXPECT_EQ(given(advise(config, {.stream = each.stream})), expected)
        << each.polygon[0][0] << "," << each.polygon[0][1] << " … " << each.polygon[2][0] << "," << each.polygon[2][1];
  }
}

TEST(Advice, OnAZone_HasTheNumbers_AndWhatToWrite) {
  auto said = [](const Config& config, std::optional<FrameSize> stream) {
    return advise(config, {.stream = stream}).at(0).message;
  };
  EXPECT_EQ(said(with_zone({{0.1, 0.1}, {0.9, 0.1}, {0.5, 0.9}}, "gate"), FrameSize{1280, 720}),
            "zone 7 (gate) has coordinates between 0 and 1, but a polygon is in pixels, so it covers one pixel in the "
            "picture's corner; in a picture of 1280x720 the same place is [[128,72],[1152,72],[640,648]]");
  EXPECT_EQ(said(with_zone({{0.1, 0.1}, {0.9, 0.1}, {0.5, 0.9}}), std::nullopt),
            "zone 7 has coordinates between 0 and 1, but a polygon is in pixels, so it covers one pixel in the picture's "
            "corner; multiply each x by the width of the picture and each y by its height");
  EXPECT_EQ(said(with_zone(box(200, 200, 203.5, 204)), std::nullopt),
            "zone 7 is 3.5 pixels wide and 4 high, so that hardly anything can lie in it; draw it as large as the place "
            "that is meant");
  EXPECT_EQ(said(with_zone(box(2000, 100, 2600, 400)), FrameSize{1280, 720}),
            "zone 7 lies outside the picture, so nothing can lie in it: it spans x 2000 to 2600 and y 100 to 400, the "
            "picture is 1280x720; draw it inside the picture, or set frame_size to the size of the picture that it was "
            "drawn on");
  EXPECT_TRUE(said(with_zone(box(1000, 500, 1900, 1000)), FrameSize{1280, 720})
                  .starts_with("only 14 % of zone 7 lies in the picture: "));
}

TEST(Advice, Labels_OfTheCameraAndItsZones) {
  Config config = with_zone(box(100, 100, 700, 500));
  config.allow_labels = {"person", "persn"};
  config.zones[0].allow_labels = {"Car", "vehicle"};
  EXPECT_EQ(given(advise(config, {})), std::vector<std::string>{}) << "no runner has said what the model knows";
  auto warnings = advise(config, {.labels = &kLabels});
  EXPECT_EQ(given(warnings), (std::vector<std::string>{"label_unknown allow_labels[1]",
                                                       "label_unknown zones[0].allow_labels[0]",
                                                       "label_unknown zones[0].allow_labels[1]"}));
  EXPECT_EQ(warnings[0].message,
            "the camera allows \"persn\", a label that the tflite model does not have, so nothing is ever detected under "
            "it; did you mean \"person\"? all its labels: weir model labels");
  EXPECT_EQ(warnings[1].message,
            "zone 7 allows \"Car\", a label that the tflite model does not have, so nothing is ever detected under it; "
            "write \"car\"; all its labels: weir model labels");
  config.model = {"onnx", "yolo11n"};
  EXPECT_TRUE(advise(config, {.labels = &kLabels})[2].message.ends_with(
      "a label that the model yolo11n does not have, so nothing is ever detected under it; all its labels: weir model "
      "labels yolo11n"));
  EXPECT_EQ(given(advise_on(config.zones[0], config, {.labels = &kLabels}))[0], "label_unknown allow_labels[0]");
}

TEST(Advice, ACameraFullOfMistakes_IsToldTheFirstOnes) {
  Config config = with_zone(box(0, 0, 1, 1));
  config.allow_labels.emplace(100, "persn");
  config.zones.resize(64, config.zones[0]);
  EXPECT_EQ(advise(config, {.labels = &kLabels}).size(), kWarningsMax);
  config.allow_labels.reset();
  EXPECT_EQ(advise(config, {.labels = &kLabels}).size(), kWarningsMax);
}

TEST(Advice, TheNearestLabel_IsTheOneThatWasMeant) {
  for (auto [wrong, meant] : {std::pair{"persn", "person"}, {"Person", "person"}, {"PERSON", "person"},
                              {"persons", "person"}, {"preson", "person"}, {"perzonn", "person"}, {"cra", "car"},
                              {"cars", "car"}, {"cat", "cat"}, {"fire-hydrant", "fire hydrant"},
                              {"stopsign", "stop sign"}, {"dog", ""}, {"human", ""}, {"vehicle", ""}, {"x", ""},
                              {"motorbike", ""}})
    EXPECT_EQ(nearest_label(wrong, kLabels), meant) << wrong;
  EXPECT_EQ(nearest_label("person", {}), "");
}

}  // namespace
}  // namespace weir::camera
