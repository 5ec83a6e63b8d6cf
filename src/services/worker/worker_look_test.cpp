#include "worker_testing.hpp"

namespace weir::worker {
namespace {

// Managers from before the look judge a worker by the page for people: that page goes on saying the same in the same
// words.
TEST_F(WorkerTest, PageForPeople_StillReadsAsTheLook_ForAnOlderManager) {
  fake("dead")->up = false;
  make({source("good"), source("dead")});
  ASSERT_TRUE(eventually(10s, [&] {
    return is("good", "STREAMING") && count("good", "inferred") > 0 && count("dead", "errors") > 0;
  }));
  link::Look look = worker_->look();
  auto read = link::read_look(worker_->state());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(look.protocol, link::kProtocol);
  EXPECT_EQ(read->protocol, 0) << "the page for people has no protocol";
  ASSERT_EQ(look.cameras.size(), 2u);
  ASSERT_EQ(read->cameras.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(look.cameras[i].camera, read->cameras[i].camera);
    EXPECT_EQ(look.cameras[i].streaming, read->cameras[i].streaming);
    EXPECT_EQ(look.cameras[i].error, read->cameras[i].error);
    EXPECT_EQ(look.cameras[i].behind, read->cameras[i].behind);
    EXPECT_EQ(look.cameras[i].inferred > 0, read->cameras[i].inferred > 0);
    EXPECT_EQ(look.cameras[i].failures > 0, read->cameras[i].failures > 0);
    EXPECT_EQ(look.cameras[i].frame_age.has_value(), read->cameras[i].frame_age.has_value());
  }
  EXPECT_TRUE(look.cameras[1].streaming) << "the cameras come by their names: dead, good";
  EXPECT_FALSE(look.cameras[0].streaming);
}

}  // namespace
}  // namespace weir::worker
