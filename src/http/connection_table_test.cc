#include "http/connection_table.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::http {
namespace {

using testing::Optional;

SteadyTime Second(int n) { return SteadyTime::FromNanos(n * 1'000'000'000LL); }

TEST(ConnectionTable, ClosesTheOldestStrangerOfThePeerWithMost) {
  ConnectionTable table({.most = 10, .most_strangers = 3});
  table.Add(1, "quiet", Second(0));
  table.Add(2, "flood", Second(1));
  table.Add(3, "flood", Second(2));
  EXPECT_EQ(table.Excess(), std::nullopt);
  table.Add(4, "flood", Second(3));
  EXPECT_THAT(table.Excess(), Optional(2));
}

TEST(ConnectionTable, NeverClosesAServedOneForAnother) {
  ConnectionTable table({.most = 2, .most_strangers = 2});
  table.Add(1, "a", Second(0));
  table.Add(2, "b", Second(1));
  table.Update(1, Standing::kServed, Second(0));
  EXPECT_TRUE(table.HasRoom());  // that of 2
  table.Add(3, "b", Second(2));
  EXPECT_THAT(table.Excess(), Optional(2));
  table.Remove(2);
  table.Update(3, Standing::kServed, Second(2));
  EXPECT_FALSE(table.HasRoom());
  EXPECT_EQ(table.Excess(), std::nullopt);
}

TEST(ConnectionTable, ClosesTheLongestIdleOneForAFewStrangersAndStrangersForMany) {
  ConnectionTable table({.most = 3, .most_strangers = 2});
  table.Add(1, "a", Second(0));
  table.Add(2, "a", Second(1));
  table.Update(1, Standing::kIdle, Second(5));
  table.Update(2, Standing::kIdle, Second(4));
  table.Add(3, "b", Second(6));
  table.Add(4, "b", Second(7));
  EXPECT_THAT(table.Excess(), Optional(2));
  table.Remove(2);
  EXPECT_EQ(table.Excess(), std::nullopt);
  table.Add(5, "b", Second(8));
  EXPECT_THAT(table.Excess(), Optional(3));
}

TEST(ConnectionTable, KnowsAClientAfterItsFirstRequest) {
  ConnectionTable table({.most = 3, .most_strangers = 1});
  table.Add(1, "a", Second(0));
  table.Update(1, Standing::kStranger, Second(1));  // of a request that was refused
  table.Add(2, "a", Second(2));
  EXPECT_THAT(table.Excess(), Optional(1));
  table.Update(1, Standing::kServed, Second(1));
  table.Update(1, Standing::kIdle, Second(3));
  EXPECT_EQ(table.Excess(), std::nullopt);
}

TEST(PeerOf, IsTheMachineAndNotThePort) {
  const auto peer = [](const char* text, int port) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(static_cast<std::uint16_t>(port));
    EXPECT_EQ(::inet_pton(AF_INET6, text, &address.sin6_addr), 1);
    return PeerOf(reinterpret_cast<const sockaddr*>(&address));
  };
  sockaddr_in old{};
  old.sin_family = AF_INET;
  old.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(peer("::ffff:127.0.0.1", 1), PeerOf(reinterpret_cast<const sockaddr*>(&old)));
  EXPECT_EQ(peer("2001:db8::1", 1), peer("2001:db8::2", 2));
  EXPECT_NE(peer("2001:db8::1", 1), peer("2001:db8:0:1::1", 1));
}

}  // namespace
}  // namespace trainyard::http
