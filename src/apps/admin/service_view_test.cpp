#include "admin/service_view.hpp"

#include <gtest/gtest.h>

namespace weir::apps {
namespace {

json::object camera(const char* processing, bool enabled = true) {
  return {{"camera_uuid", "c"}, {"enabled", enabled}, {"processing", processing}, {"cluster", "halls"}};
}

TEST(ServiceView, AClusterWithoutAMaster_IsSaid_WithHowManyCamerasNobodyLooksAt) {
  json::array cameras{camera("cluster"), camera("cluster"), camera("cluster", false), camera("lease")};
  ServiceView dead = service_view(cameras, {}, {});
  EXPECT_EQ(troubles_text(dead), "cluster halls has no master: nobody looks at its 2 cameras; ");
  ServiceView alive = service_view(cameras, {json::object{{"cluster", "halls"}, {"runner_id", "one"}}}, {});
  EXPECT_EQ(troubles_text(alive), "");
  ASSERT_EQ(alive.clusters.size(), 1u);
  EXPECT_EQ(alive.clusters[0].master, "one");
}

TEST(ServiceView, AStreamThatDoesNotRunAsWished_IsNamed) {
  json::array streams{json::object{{"stream_id", "good"}, {"holder", "o1"}, {"state", "running"}},
                      json::object{{"stream_id", "left"}, {"holder", nullptr}, {"state", "unattended"}}};
  ServiceView view = service_view({}, {}, streams);
  EXPECT_EQ(view.streams, 2);
  EXPECT_EQ(view.held, 1);
  EXPECT_EQ(troubles_text(view),
            "1 published stream has a problem, left: nobody serves it: its orchestrator fell silent or lost its lease; ");
}

}  // namespace
}  // namespace weir::apps
