#include "weir/tflite/labels.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace weir::tflite {
namespace {

using Labels = std::vector<std::string>;

Labels labels_in(const std::string& text) {
  std::string path = ::testing::TempDir() + "weir-labels-" + std::to_string(getpid()) + ".txt";
  std::ofstream(path) << text;
  auto labels = labels_of({"library", "model", path}, "");
  std::filesystem::remove(path);
  return labels ? *labels : Labels{labels.error().message};
}

TEST(TfliteLabels, AreTheClassesInOrder) {
  EXPECT_EQ(labels_in("person\nbicycle\n???\ncar\n"), (Labels{"person", "bicycle", "???", "car"}));
  EXPECT_EQ(labels_in("person\n\ncar\n"), (Labels{"person", "", "car"}));
}

TEST(TfliteLabels, BackgroundInFrontIsNoClass) {
  EXPECT_EQ(labels_in("???\nperson\n???\ncar\n"), (Labels{"person", "???", "car"}));
  EXPECT_EQ(labels_in("background\nperson\n"), (Labels{"person"}));
  EXPECT_EQ(labels_in("0  background\n1  person\n3  car\n"), (Labels{"person", "", "car"}));
  EXPECT_EQ(labels_in("person\nbackground\n"), (Labels{"person", "background"}));
}

TEST(TfliteLabels, NumbersAreTheClasses_AndNoPartOfTheName) {
  EXPECT_EQ(labels_in("0  person\n1  bicycle\n3  traffic light\n"), (Labels{"person", "bicycle", "", "traffic light"}));
  EXPECT_EQ(labels_in("0: person\r\n1: car\r\n\r\n"), (Labels{"person", "car"}));
  EXPECT_EQ(labels_in("1 person\n2 car\n"), (Labels{"person", "car"})) << "counted from one";
}

TEST(TfliteLabels, NumbersThatAreNamesStay) {
  for (const Labels& each : {Labels{"person", "1 car"}, Labels{"2 wheels", "2 doors"}, Labels{"0", "1"},
                             Labels{"0x", "1x"}, Labels{"0 person", "999999999 car"}})
    EXPECT_EQ(labels_in(each[0] + "\n" + each[1]), each);
}

}  // namespace
}  // namespace weir::tflite
