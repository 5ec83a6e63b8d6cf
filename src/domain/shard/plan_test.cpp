#include "weir/shard/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace weir::shard {
namespace {

Member member(int camera, int site, bool alone = false) {
  return {CameraId::trusted(fmt::format("cam-{:03}", camera)), SiteId::trusted(fmt::format("site-{}", site)), alone};
}

std::map<ShardNumber, std::vector<const Member*>> by_shard(const std::vector<Member>& members, const Assignment& plan) {
  std::map<ShardNumber, std::vector<const Member*>> out;
  for (const Member& m : members) out[plan.at(m.camera)].push_back(&m);
  return out;
}

TEST(ShardPlan, CamerasOfOneSiteStayTogether) {
  std::vector<Member> members;
  for (int i = 0; i < 6; ++i) members.push_back(member(i, i % 2));
  Assignment made = plan(members, {}, 3);
  for (const auto& [number, group] : by_shard(members, made))
    for (const Member* m : group) EXPECT_EQ(m->site, group.front()->site);
}

TEST(ShardPlan, ACameraThatCrashedItsWorkerGetsOneOfItsOwn) {
  std::vector<Member> members{member(1, 0), member(2, 0), member(3, 0)};
  Assignment before = plan(members, {}, 8);
  members[1].alone = true;
  Assignment after = plan(members, before, 8);
  EXPECT_EQ(after.at(members[0].camera), before.at(members[0].camera));
  EXPECT_EQ(after.at(members[2].camera), before.at(members[2].camera));
  EXPECT_NE(after.at(members[1].camera), after.at(members[0].camera));
  members.push_back(member(4, 0));
  EXPECT_NE(plan(members, after, 8).at(members[3].camera), after.at(members[1].camera));
}

TEST(ShardPlan, AShardThatBecameTooFullLosesItsLastCamerasOnly) {
  std::vector<Member> members;
  for (int i = 0; i < 8; ++i) members.push_back(member(i, 0));
  Assignment before = plan(members, {}, 8);
  Assignment after = plan(members, before, 6);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(after.at(members[static_cast<size_t>(i)].camera), 0);
  for (int i = 6; i < 8; ++i) EXPECT_EQ(after.at(members[static_cast<size_t>(i)].camera), 1);
}

TEST(ShardPlan, WhatLeftTheRunnerLeavesThePlan) {
  std::vector<Member> members{member(1, 0), member(2, 0)};
  Assignment before = plan(members, {}, 4);
  members.pop_back();
  EXPECT_EQ(plan(members, before, 4).size(), 1u);
}

// The promises of the header, over random fleets that grow, shrink, crash and change their shard size.
TEST(ShardPlan, KeepsItsPromisesForAnyFleet) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    auto draw = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
    int size = 1 + draw(16);
    std::vector<Member> members;
    Assignment present;
    for (int round = 0; round < 25; ++round) {
      int camera = draw(200);
      auto known = std::ranges::find(members, member(camera, 0).camera, &Member::camera);
      bool added = known == members.end();
      if (added) members.push_back(member(camera, draw(6), draw(20) == 0));
      else if (draw(3) == 0) members.erase(known);
      else if (draw(6) == 0) known->alone = true;
      if (draw(12) == 0) size = 1 + draw(16);

      Assignment made = plan(members, present, size);
      std::ranges::shuffle(members, random);
      ASSERT_EQ(plan(members, present, size), made) << "order matters, seed " << seed;
      ASSERT_EQ(plan(members, made, size), made) << "planning again changes something, seed " << seed;
      ASSERT_EQ(made.size(), members.size());
      for (const auto& [number, group] : by_shard(members, made)) {
        ASSERT_LE(std::ssize(group), size);
        for (const Member* m : group) ASSERT_TRUE(!m->alone || group.size() == 1) << "seed " << seed;
      }

      std::vector<Member> more = members;
      more.push_back(member(500 + round, draw(6)));
      Assignment grown = plan(more, made, size);
      for (const auto& [id, number] : made) ASSERT_EQ(grown.at(id), number) << "an added camera moved another";
      present = made;
    }
  }
}

}  // namespace
}  // namespace weir::shard
