// What every carrier of pictures promises, over memory and a real PostgreSQL.
#include "stores.hpp"

namespace weir::test {

class PicturesContract : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (!stores.unavailable.empty()) GTEST_SKIP() << stores.unavailable;
  }
  Pictures& p() { return stores.postgres ? static_cast<Pictures&>(*stores.postgres) : memory; }
  std::optional<SnapshotPicture> find(const CameraId& camera, const std::string& request) {
    auto found = stores.run(p().find_picture(camera, request));
    EXPECT_TRUE(found);
    return found ? *found : std::nullopt;
  }
  Stores stores{GetParam()};
  MemoryPictures memory;
};

TEST_P(PicturesContract, Picture_IsFoundByItsQuestion_AlsoWhereAnotherOneCameRightAfter) {
  EXPECT_FALSE(find(cam(1), "q1"));
  std::string large(900'000, 'A');
  ASSERT_TRUE(stores.run(p().put_picture(cam(1), {"q1", large, "2026-01-31T12:00:00.000Z"})));
  ASSERT_TRUE(stores.run(p().put_picture(cam(2), {"q2", ""})));
  auto first = find(cam(1), "q1");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->jpeg, large);
  EXPECT_EQ(first->captured_at, "2026-01-31T12:00:00.000Z");
  EXPECT_FALSE(find(cam(1), "q2")) << "another camera's question";
  EXPECT_EQ(find(cam(2), "q2")->jpeg, "");
  ASSERT_TRUE(stores.run(p().put_picture(cam(1), {"q3", "BB"})));
  EXPECT_EQ(find(cam(1), "q3")->jpeg, "BB");
  EXPECT_TRUE(find(cam(1), "q1")) << "whoever asked at the same moment has not read it yet";
}

INSTANTIATE_TEST_SUITE_P(Stores, PicturesContract, testing::Values(Kind::fake, Kind::postgres),
                         [](const auto& kind) { return kind.param == Kind::fake ? "Memory" : "Postgres"; });

}  // namespace weir::test
