// Zones, cameras and keys by command, against a real `weir up`.
#include "cli_shell.hpp"
#include "where.hpp"

namespace weir::test {
namespace {

class CameraCommands : public CliUp {};

TEST_F(CameraCommands, Zones_AreAddedReplacedListedAndRemoved) {
  done("camera add --create --tenant t-01 --site site-A --id cam-1 rtsp://camera.example/1");
  done("camera add --tenant t-01 --site site-A --id cam-2 rtsp://camera.example/2");
  EXPECT_TRUE(has(done("zone list cam-1"), "no zones"));
  EXPECT_EQ(done("zone add cam-1 --name gate --labels person,car --min-score 0.5 --polygon", {"100,100 700,100 700.5,500"}),
            "camera cam-1 has zone 1\n");
  EXPECT_EQ(done("zone add cam-1 --id 7 --kind exclude --priority 200 --polygon", {"0,0 90,0 90,200"}),
            "camera cam-1 has zone 7\n");
  EXPECT_EQ(done("zone add cam-2 --polygon", {"0,0 9,0 9,9"}), "camera cam-2 has zone 1\n");
  json::value gate = as_json("zone show cam-1 1");
  EXPECT_EQ(json::to_text(gate.at("polygon")), "[[100,100],[700,100],[700.5,500]]");
  EXPECT_EQ(json::to_text(gate.at("allow_labels")), R"(["person","car"])");
  EXPECT_EQ(gate.at("min_score"), json::value(0.5));
  std::string list = done("zone list cam-1");
  for (const char* part : {"gate", "person,car", "exclude", "200", "100,100 700,100 700.5,500"}) EXPECT_TRUE(has(list, part)) << list;
  EXPECT_EQ(as_json("zone list").at("items").as_array().size(), 3u);
  EXPECT_EQ(as_json("zone list --site site-A").at("items").as_array().size(), 3u);
  EXPECT_EQ(as_json("zone list --site elsewhere").at("items").as_array().size(), 0u);
  expect_complaint(run("zone add cam-1 --id 7 --polygon", {"0,0 9,0 9,9"}), 1, "--replace puts this one in its place");
  done("zone add cam-1 --id 7 --replace --polygon", {"0,0 9,0 9,9"});
  EXPECT_EQ(as_json("zone show cam-1 7").at("kind").as_string(), "include");
  EXPECT_EQ(done("zone add cam-1 --id 9 --replace --polygon", {"0,0 9,0 9,9"}), "camera cam-1 has zone 9\n");
  expect_complaint(run("zone add cam-1 --polygon", {"0,0 9,0"}), 1, "polygon must have at least three");
  expect_complaint(run("zone add cam-1 --kind maybe --polygon", {"0,0 9,0 9,9"}), 1, "include, exclude");
  expect_complaint(run("zone add nowhere --polygon", {"0,0 9,0 9,9"}), 1, "camera");
  EXPECT_EQ(done("zone remove cam-1 7"), "removed zone 7 of camera cam-1\n");
  expect_complaint(run("zone show cam-1 7"), 1, "zone");
}

TEST_F(CameraCommands, CameraSet_ChangesWhatItIsTold_AndNamesWhatIsWrong) {
  done("camera add --create --tenant t-01 --site site-A --id cam-1 rtsp://u:S3cretC4n4ry@camera.example/1");
  EXPECT_EQ(done("camera set cam-1 max_fps=4 allow_labels=person,car motion_gating.enabled=false name=17 frame_size.width=1920 "
                 "frame_size.height=1080"),
            "changed camera cam-1\n");
  json::value camera = as_json("camera show cam-1");
  EXPECT_EQ(camera.at("max_fps"), json::value(4));
  EXPECT_EQ(camera.at("name").as_string(), "17");
  EXPECT_EQ(json::to_text(camera.at("allow_labels")), R"(["person","car"])");
  EXPECT_EQ(camera.at("motion_gating").at("enabled"), json::value(false));
  EXPECT_EQ(camera.at("motion_gating").at("min_area_px"), json::value(1500)) << "what was not named stays";
  EXPECT_EQ(camera.at("frame_size").at("height"), json::value(1080));
  done("camera set cam-1 allow_labels= frame_size= motion_gating=");
  camera = as_json("camera show cam-1");
  EXPECT_FALSE(camera.as_object().contains("allow_labels"));
  EXPECT_FALSE(camera.as_object().contains("frame_size"));
  EXPECT_EQ(camera.at("motion_gating").at("enabled"), json::value(true));
  std::ofstream(folder.path() + "/new.url") << "rtsp://u:S3cretC4n4ry@camera.example/new\n";
  Ran moved = run("camera set cam-1 --url-file new.url --json");
  EXPECT_EQ(moved.parsed().at("rtsp_url").as_string(), "rtsp://***@camera.example/new");
  EXPECT_EQ(moved.err, "");
  expect_complaint(run("camera set cam-1 max_fps=0"), 1, "max_fps must be between 0.1 and 120");
  expect_complaint(run("camera set cam-1 decode=half"), 1, "decode must be one of: adaptive, full, keyframes");
  expect_complaint(run("camera set cam-1 motion_gating.downscale=9"), 1, "motion_gating.downscale must be between");
  expect_complaint(run("camera set cam-1 motion_gating.enabled=maybe"), 2, "motion_gating.enabled must be true or false");
  expect_complaint(run("camera set nowhere max_fps=4"), 1, "camera");
}

// The configuration of a camera, without the control plane's own notes.
json::object configured(const json::value& camera) {
  json::object out = camera.as_object();
  for (const char* note : {"created_at", "updated_at", "config_version", "zone_version", "crashes", "warnings"})
    out.erase(note);
  return out;
}

TEST_F(CameraCommands, CameraExport_IsImportedUnchanged_AndShowsCredentialsOnRequestAlone) {
  done("camera add --create --tenant t-01 --site site-A --id cam-1 rtsp://u:S3cretC4n4ry@camera.example/1?channel=2");
  done("camera add --tenant t-01 --site site-A --id cam-2 rtsp://camera.example/2");
  done("camera set cam-1 allow_labels=person min_score=0.55 frame_size.width=1920 frame_size.height=1080",
       {"name=Gate: \"north\" # 1"});
  done("zone add cam-1 --name gate --kind exclude --priority 5 --polygon", {"100,100 700.25,100 700,500"});
  done("camera disable cam-2");
  auto shown = [&](const std::string& id) { return configured(as_json("camera export - --json --with-credentials").at("items").at(id == "cam-1" ? 0 : 1)); };
  json::object first = shown("cam-1"), second = shown("cam-2");
  EXPECT_TRUE(has(json::to_text(first), "S3cretC4n4ry"));

  EXPECT_EQ(done("camera export all.yaml --with-credentials"), "wrote 2 cameras to all.yaml, with their credentials\n");
  EXPECT_EQ(std::filesystem::status(folder.path() + "/all.yaml").permissions(), std::filesystem::perms(0600));
  for (const char* id : {"cam-1", "cam-2"}) done("camera remove", {id});
  done("site remove site-A");
  expect_complaint(run("camera add --tenant t-01 --site site-A --id cam-1 rtsp://camera.example/1"), 1,
                   "tenant t-01 has no site site-A: --create adds it, or: weir site add site-A --tenant t-01");
  EXPECT_TRUE(has(done("camera import all.yaml --create"), "2 added, 0 updated, 0 failed"));
  EXPECT_EQ(shown("cam-1"), first);
  EXPECT_EQ(shown("cam-2"), second);

  // Without credentials: an update keeps what is there, another camera cannot be made of it.
  EXPECT_EQ(done("camera export plain.yaml --site site-A"), "wrote 2 cameras to plain.yaml\n");
  std::string plain = file_text(folder.path() + "/plain.yaml");
  EXPECT_FALSE(has(plain, "S3cretC4n4ry")) << plain;
  EXPECT_TRUE(has(plain, "# without its credentials")) << plain;
  done("camera set cam-1 min_score=0.9");
  EXPECT_TRUE(has(done("camera import plain.yaml --update"), "0 added, 2 updated, 0 failed"));
  EXPECT_EQ(shown("cam-1"), first);
  done("camera remove cam-1");
  Ran refused = run("camera import plain.yaml --update");
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(has(refused.err, "rtsp_url stands without its credentials (***)")) << refused.err;
  EXPECT_TRUE(has(refused.err, "--with-credentials")) << refused.err;
  EXPECT_TRUE(has(refused.out, "0 added, 1 updated, 1 failed")) << refused.out;

  std::ofstream(folder.path() + "/wide.csv") << "camera_uuid,tenant_id,site_id,rtsp_url,max_fps\nx,t-01,site-A,rtsp://h/x,4\n";
  expect_complaint(run("camera import wide.csv"), 1, "\"max_fps\" goes by YAML");
}

TEST_F(CameraCommands, AMistypedTenant_IsNamed_AndNothingIsAdded) {
  done("tenant add t-01");
  done("site add site-A --tenant t-01");
  expect_complaint(run("camera add --tenant t-0l --site site-A --id lost rtsp://127.0.0.1/x"), 1,
                   "there is no tenant t-0l: --create adds it, or: weir tenant add t-0l");
  expect_complaint(run("camera add --create --tenant t-0l --site site-A --id lost rtsp://127.0.0.1/x"), 1,
                   "site site-A belongs to tenant t-01, not to t-0l");
  expect_complaint(run("tenant remove t-0l"), 1, "there is no such tenant");
}

TEST_F(CameraCommands, EveryFieldInTheManual_IsImported) {
  std::string page = file_text(WEIR_SOURCE_DIR "/docs/zones.md");
  size_t begin = page.find("```yaml\n"), end = page.find("\n```", begin);
  ASSERT_NE(end, std::string::npos);
  std::string example = page.substr(begin + 8, end - begin - 7);
  std::ofstream(folder.path() + "/example.yaml") << example;
  Ran imported = run("camera import example.yaml --create");
  EXPECT_EQ(imported.err, "");
  EXPECT_TRUE(has(imported.out, "1 added, 0 updated, 0 failed")) << imported.out;
  // No field is missing there: what the camera has now is what the page says.
  for (const auto& field : configured(as_json("camera show gate-north")))
    EXPECT_TRUE(has(example, std::string(field.key()) + ":")) << field.key();
}

TEST_F(CameraCommands, ApiKey_IsAllThatACommandElsewhereNeeds) {
  std::string url = up.welcome().substr(13, up.welcome().find('\n') - 13);
  std::string admin = done("key add --role admin --sub ops"), runner = done("key add --role runner --sub r-1");
  admin.pop_back();
  runner.pop_back();
  TempDir elsewhere;
  auto there = [&](const std::string& words, const std::string& environment) {
    return weir(elsewhere, words_of(words), environment);
  };
  EXPECT_EQ(there("tenant add t-09", fmt::format("WEIR_URL={} API_KEY={}", url, admin)).out, "added tenant t-09\n");
  EXPECT_TRUE(has(there("tenant list --url " + url, "API_KEY=" + admin).out, "t-09"));
  EXPECT_TRUE(has(there(fmt::format("tenant list --url {} --api-key {}", url, admin), "WEIR_TOKEN=x").out, "t-09")) << "a flag counts more";
  expect_complaint(there("tenant add t-10 --url " + url, "API_KEY=" + runner), 1, "buys tokens of the role runner");
  expect_complaint(there("tenant list --url " + url, "API_KEY=wk_nonsense"), 1, "API_KEY: ");
  expect_complaint(there("tenant list --url " + url, ""), 1, "WEIR_TOKEN or API_KEY");
  // In the folder of a control plane its own secret counts, whatever a shell holds for a runner of another one.
  EXPECT_TRUE(has(weir(folder, {"tenant", "list", "--state-dir", up.state()}, "API_KEY=wk_nonsense").out, "t-09"));
}

}  // namespace
}  // namespace weir::test
