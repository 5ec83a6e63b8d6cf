#include "weir/rabbitmq/address.hpp"

#include <gtest/gtest.h>

namespace weir::rabbitmq {
namespace {

TEST(AmqpAddress, IsReadWithDefaults_AndDecoded) {
  EXPECT_EQ(*read_address("amqp://rabbit"), (Address{.host = "rabbit"}));
  EXPECT_EQ(*read_address("amqps://rabbit/"), (Address{.host = "rabbit", .port = 5671, .tls = true}));
  EXPECT_EQ(*read_address("amqp://me:p%40ss@10.0.0.1:7000/a%2Fb"),
            (Address{.host = "10.0.0.1", .port = 7000, .vhost = "a/b", .user = "me", .password = Secret("p@ss")}));
}

TEST(AmqpAddress, AWrongOne_IsNotRepeatedInTheError) {
  for (const char* url : {"", "rabbit", "http://u:canary@h", "amqp://u:canary@h:0x", "amqp://u:canary@h:70000",
                          "amqp://u:canary@h/v?heartbeat=1", "amqp://u:canary@h/a/b"}) {
    auto read = read_address(url);
    ASSERT_FALSE(read) << url;
    EXPECT_EQ(read.error().code, Errc::invalid);
    EXPECT_EQ(read.error().message.find("canary"), std::string::npos) << url;
  }
}

TEST(AmqpAddress, IsShownWithoutItsCredentials) {
  EXPECT_EQ(shown(*read_address("amqp://me:canary@h:5673/v")), "h:5673/v");
  EXPECT_EQ(shown(Address{}), "localhost:5672");
}

}  // namespace
}  // namespace weir::rabbitmq
