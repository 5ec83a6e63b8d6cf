// Mistakes that an operator makes in a camera's configuration, with everything real: what the commands say when they
// are made, what `weir status` says until they are mended, and what it says then.
#include "fleet.hpp"
#include "stall.hpp"
#include "where.hpp"

#include "weir/base/json.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

namespace weir::test {
namespace {

struct Said {
  int code = -1;
  std::string out, err;
};

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

class Advice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fleet_needs().empty()) GTEST_SKIP() << fleet_needs();
    FleetOptions options{.profile = "width=384,height=288,fps=10,keyframe_s=1,seconds=10"};
    fleet_ = std::make_unique<RunnerFleet>(std::move(options));
  }
  std::string file_text(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(fleet_->folder().path() + "/" + name).rdbuf();
    return text.str();
  }
  // As a person would say it.
  Said weir(const std::string& words) const {
    std::string folder = fleet_->folder().path();
    std::string command =
        fmt::format("cd {0} && env -u MODELS_DIR WEIR_URL={1} WEIR_TOKEN={2} '{3}' {4} >{0}/out 2>{0}/err </dev/null",
                    folder, fleet_->plane().url(), fleet_->plane().token("admin").reveal(), WEIR_BINARY, words);
    int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, file_text("out"), file_text("err")};
  }
  Said import(const std::string& cam_1, const std::string& cam_2) const {
    std::ofstream file(fleet_->folder().path() + "/cameras.yaml");
    for (const auto& [id, more] : {std::pair{"cam-1", cam_1}, {"cam-2", cam_2}})
      file << fmt::format("- {{camera_uuid: {}, tenant_id: t1, site_id: s1, rtsp_url: '{}', {}}}\n", id,
                          fleet_->camsim().url(id), more);
    file.close();
    return weir("camera import cameras.yaml --update");
  }
  // "camera code" of every warning that the status knows of.
  std::set<std::string> warned() const {
    std::set<std::string> out;
    auto seen = json::parse_text(weir("status --json").out);
    if (!seen || !seen->as_object().contains("warnings")) return {"no answer"};
    for (const json::value& each : seen->at("warnings").as_array())
      out.insert(fmt::format("{} {}", std::string_view(each.at("camera_uuid").as_string()),
                             std::string_view(each.at("code").as_string())));
    return out;
  }

  std::unique_ptr<RunnerFleet> fleet_;
};

TEST_F(Advice, MistakesInZonesAndLabels_AreAnswered_AndStandInTheStatus_UntilTheyAreMended) {
  Said made = import("allow_labels: [person, persn], zones: [{zone_id: 1, polygon: [[0.1,0.1],[0.9,0.1],[0.5,0.9]]}]",
                     "zones: [{zone_id: 1, name: gate, polygon: [[600,100],[700,100],[700,250]]}]");
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(has(made.out, "2 updated")) << made.out;
  EXPECT_TRUE(made.err.starts_with("warning: cameras.yaml:1: cam-1: zone 1 has coordinates between 0 and 1"))
      << made.err;
  EXPECT_EQ(std::ranges::count(made.err, '\n'), 1) << "nobody knows the stream or the model yet: " << made.err;
  Said unknown = weir("model labels");
  EXPECT_EQ(unknown.code, 1);
  EXPECT_TRUE(has(unknown.err, "weir model labels --local")) << unknown.err;

  fleet_->add("r1");
  ASSERT_TRUE(fleet_->all_stream(30s)) << fleet_->report();
  const std::set<std::string> expected{"cam-1 label_unknown", "cam-1 zone_relative", "cam-2 zone_outside"};
  EXPECT_TRUE(eventually(20s, [&] { return between_looks(), warned() == expected; }))
      << json::to_text(fleet_->plane().get("/v1/cameras").body) << fleet_->report();
  Said status = weir("status");
  EXPECT_FALSE(has(status.out, "everything is all right")) << status.out;
  EXPECT_TRUE(has(status.out, "2 cameras have mistakes in their configuration")) << status.out;
  EXPECT_TRUE(has(status.out, "did you mean \"person\"?")) << status.out;
  Said shown = weir("camera show cam-2");
  EXPECT_TRUE(has(shown.err, "warning: zone 1 (gate) lies outside the picture")) << shown.err;
  EXPECT_TRUE(has(shown.err, "the picture is 384x288")) << shown.err;
  EXPECT_FALSE(has(shown.out, "warnings")) << shown.out;

  Said mended = import("allow_labels: [person], zones: [{zone_id: 1, polygon: [[38,29],[346,29],[192,260]]}]",
                       "zones: [{zone_id: 1, name: gate, polygon: [[200,100],[300,100],[300,250]]}]");
  EXPECT_EQ(mended.err, "");
  EXPECT_EQ(warned(), std::set<std::string>{});
  EXPECT_TRUE(eventually(20s, [&] { return between_looks(), has(weir("status").out, "everything is all right"); }))
      << weir("status").out;
}

TEST_F(Advice, ModelLabels_AreThoseThatTheRunnersHave_OrThisMachine) {
  fleet_->add("r1");
  EXPECT_TRUE(eventually(20s, [&] { return between_looks(), weir("model labels").code == 0; }))
      << weir("model labels").err;
  Said labels = weir("model labels");
  EXPECT_TRUE(has(labels.out, "\nperson\n")) << labels.out;
  EXPECT_TRUE(has(labels.out, "\nfire hydrant\n")) << labels.out;
  EXPECT_FALSE(has(labels.out, "???"));
  EXPECT_EQ(weir("model labels efficientdet-lite0").out, labels.out);
  Said here = weir("model labels tflite --local --models-dir " + part("models"));
  EXPECT_EQ(here.out, labels.out) << here.err;
  Said wrong = weir("model labels efficientnet");
  EXPECT_EQ(wrong.code, 1);
  EXPECT_TRUE(has(wrong.err, "no model is called efficientnet; there are: ")) << wrong.err;
  auto listed = json::parse_text(weir("model labels efficientdet-lite0 --json").out);
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->at("items").at(0).at("default"), true);
  EXPECT_EQ(listed->at("items").at(0).at("runners"), 1);
}

}  // namespace
}  // namespace weir::test
