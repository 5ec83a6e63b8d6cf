#include "camera_file.hpp"

#include <gtest/gtest.h>

namespace weir::apps {
namespace {

using Cells = std::vector<std::string>;

TEST(Csv, Quotes_Commas_LineEnds) {
  auto rows = parse_csv(
      "\xEF\xBB\xBF"
      "a,b\r\n\r\n\"x, \"\"y\"\"\",\"two\nlines\"\n  \nlast,\n,");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].cells, (Cells{"a", "b"}));
  EXPECT_EQ(rows[1].cells, (Cells{"x, \"y\"", "two\nlines"}));
  EXPECT_EQ(rows[2].cells, (Cells{"last", ""}));
  EXPECT_EQ(rows[3].cells, (Cells{"", ""}));
  EXPECT_EQ(rows[0].line, 1);
  EXPECT_EQ(rows[1].line, 3);
  EXPECT_EQ(rows[2].line, 6);
  EXPECT_TRUE(parse_csv("").empty());
}

TEST(Csv, AnOpenQuote_IsAProblemOfItsLine) {
  auto rows = parse_csv("a,b\n\"open,b\nc,d\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].line, 2);
  EXPECT_EQ(rows[1].problem, "a quote is not closed");
}

TEST(CameraFile, Csv_WithoutAHeader_HasTheUsualOrder) {
  auto lines = read_camera_file("c1,t,s,rtsp://h/x\nc2,t,s,rtsp://h/y,Door\n", "cams.csv");
  ASSERT_TRUE(lines);
  ASSERT_EQ(lines->size(), 2u);
  EXPECT_EQ(json::to_text((*lines)[0].camera),
            R"({"camera_uuid":"c1","tenant_id":"t","site_id":"s","rtsp_url":"rtsp://h/x"})");
  EXPECT_EQ((*lines)[1].camera.at("name").as_string(), "Door");
}

TEST(CameraFile, Csv_AHeaderMayChangeTheOrder) {
  auto lines = read_camera_file("rtsp_url,site_id,tenant_id,camera_uuid\nrtsp://h/x,s,t,c1\n", "cams.csv");
  ASSERT_TRUE(lines);
  ASSERT_EQ(lines->size(), 1u);
  EXPECT_EQ((*lines)[0].line, 2);
  EXPECT_EQ((*lines)[0].camera.at("camera_uuid").as_string(), "c1");
  EXPECT_EQ((*lines)[0].camera.at("rtsp_url").as_string(), "rtsp://h/x");
}

TEST(CameraFile, Csv_BadLines_DoNotSpoilTheOthers) {
  auto lines = read_camera_file("c1,t,s\nc2,t,s,u\nc3,t,s,u,n,extra\n", "cams.csv");
  ASSERT_TRUE(lines);
  ASSERT_EQ(lines->size(), 3u);
  EXPECT_EQ((*lines)[0].problem, "must have 4 to 5 columns, has 3");
  EXPECT_EQ((*lines)[1].problem, "");
  EXPECT_EQ((*lines)[2].problem, "must have 4 to 5 columns, has 6");
}

TEST(CameraFile, Csv_AColumnItDoesNotHave_IsNamed_WithWhatTakesIt) {
  auto lines = read_camera_file("camera_uuid,tenant_id,site_id,rtsp_url,max_fps\nc,t,s,u,4\nd,t,s,u,4\n", "cams.csv");
  ASSERT_FALSE(lines);
  const std::string& said = lines.error().message;
  for (const char* part : {"\"max_fps\" goes by YAML", "cameras.yaml", "max_fps: …}", "weir camera export"})
    EXPECT_NE(said.find(part), std::string::npos) << said;
}

TEST(CameraFile, Csv_AHeaderWithoutWhatACameraNeeds_IsToldOnce) {
  auto lines = read_camera_file("camera_uuid,site_id,rtsp_url\nc,s,u\nd,s,u\n", "cams.csv");
  ASSERT_FALSE(lines);
  EXPECT_EQ(lines.error().message, "cams.csv: its first line names no column tenant_id; a camera needs camera_uuid, "
                                   "tenant_id, site_id, rtsp_url");
}

TEST(CameraFile, Written_IsReadBackUnchanged) {
  auto camera = json::parse_text(
      R"({"camera_uuid":"17","tenant_id":"t","site_id":"true","name":"say \"hé\": # - {x}","rtsp_url":"rtsp://u:p@h/x?a=b",)"
      R"("enabled":false,"zones":[{"zone_id":1,"name":"null","kind":"include","priority":-5,)"
      R"("polygon":[[0,0],[10.5,0],[10,10]],"allow_labels":["inf","1e5"],"min_score":0.55},{"zone_id":2,"name":""}],)"
      R"("allow_labels":[],"min_score":0.3,"max_fps":2.5,"model":{"detector":"hog","name":"7"}})");
  ASSERT_TRUE(camera) << camera.error().message;
  std::string text = write_camera_file({camera->get_object(), json::object{{"camera_uuid", "b"}}});
  auto lines = read_camera_file(text, "cams.yaml");
  ASSERT_TRUE(lines) << lines.error().message << text;
  ASSERT_EQ(lines->size(), 2u) << text;
  EXPECT_EQ(json::to_text((*lines)[0].camera), json::to_text(*camera)) << text;
  EXPECT_EQ((*lines)[1].camera.at("camera_uuid"), json::value("b"));
  EXPECT_EQ(text.find("without its credentials"), std::string::npos) << text;
  EXPECT_NE(write_camera_file({{{"rtsp_url", "rtsp://***@h/x"}}}).find("# without its credentials"), std::string::npos);
  EXPECT_TRUE(read_camera_file(write_camera_file({}), "cams.yaml")->empty());
}

TEST(CameraFile, Yaml_TakesWhatTheApiTakes) {
  auto lines = read_camera_file(
      "- camera_uuid: 17\n"
      "  tenant_id: t\n"
      "  site_id: \"s\"\n"
      "  rtsp_url: rtsp://h/x\n"
      "  enabled: false\n"
      "  max_fps: 2.5\n"
      "  max_sessions: 2\n"
      "  model: {name: \"7\", detector: hog}\n"
      "  allow_labels: [person, \"1\"]\n"
      "  crop: ~\n"
      "- just text\n",
      "cams.yaml");
  ASSERT_TRUE(lines) << lines.error().message;
  ASSERT_EQ(lines->size(), 2u);
  EXPECT_EQ(json::to_text((*lines)[0].camera),
            R"({"camera_uuid":"17","tenant_id":"t","site_id":"s","rtsp_url":"rtsp://h/x",)"
            R"("enabled":false,"max_fps":2.5,"max_sessions":2,"model":{"name":"7","detector":"hog"},)"
            R"("allow_labels":["person","1"],"crop":null})");
  EXPECT_EQ((*lines)[1].line, 11);
  EXPECT_FALSE((*lines)[1].problem.empty());
}

TEST(CameraFile, Yaml_MayPutTheListUnderCameras) {
  auto lines = read_camera_file("cameras:\n  - {camera_uuid: a}\n", "cams.yml");
  ASSERT_TRUE(lines);
  EXPECT_EQ(lines->size(), 1u);
  EXPECT_TRUE(read_camera_file("", "cams.yml"));
}

TEST(CameraFile, Nonsense_IsOneSentence_WithoutItsContent) {
  for (std::string text : {"just text", "{a: b}", "- \"rtsp://u:hunter2@h", "[", "\xff\xfe"}) {
    auto lines = read_camera_file(text, "cams.yaml");
    ASSERT_FALSE(lines) << text;
    EXPECT_TRUE(lines.error().message.starts_with("cams.yaml")) << lines.error().message;
    EXPECT_EQ(lines.error().message.find("hunter2"), std::string::npos);
  }
}

}  // namespace
}  // namespace weir::apps
