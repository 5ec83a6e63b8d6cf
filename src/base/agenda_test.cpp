#include "weir/base/agenda.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

Instant at(int s) { return Instant(Duration(std::chrono::seconds(s))); }

TEST(Agenda, WhatIsDue_ComesInItsOrder_AndOnce) {
  Agenda<std::string> agenda;
  EXPECT_EQ(agenda.next(), std::nullopt);
  agenda.set("c", at(3));
  agenda.set("a", at(1));
  agenda.set("b", at(2));
  EXPECT_EQ(agenda.next(), at(1));
  EXPECT_EQ(agenda.take_due(at(2)), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(agenda.take_due(at(2)).empty());
  EXPECT_EQ(agenda.next(), at(3));
}

TEST(Agenda, AKey_HasOneMoment_AndCanBeTakenOff) {
  Agenda<std::string> agenda;
  agenda.set("a", at(1));
  agenda.set("a", at(5));
  agenda.set("b", at(2));
  EXPECT_TRUE(agenda.take_due(at(1)).empty());
  agenda.set("b", std::nullopt);
  agenda.set("unknown", std::nullopt);
  EXPECT_EQ(agenda.next(), at(5));
  EXPECT_EQ(agenda.take_due(at(9)), std::vector<std::string>{"a"});
  EXPECT_EQ(agenda.next(), std::nullopt);
}

}  // namespace
}  // namespace weir
