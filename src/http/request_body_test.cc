#include "http/request_body.h"

#include <gtest/gtest.h>

namespace trainyard::http {
namespace {

TEST(RequestBody, TellsOnceUntilWhatCameIsTaken) {
  RequestBody body([] {});
  int news = 0;
  body.OnNews([&] { ++news; });
  EXPECT_EQ(news, 0);
  body.Add("a");
  body.Add("b");
  EXPECT_EQ(news, 1);
  EXPECT_EQ(body.Take().bytes, "ab");
  body.Add("c");
  EXPECT_EQ(news, 2);
  EXPECT_FALSE(body.Take().whole);
  body.End();
  EXPECT_EQ(news, 3);
  EXPECT_TRUE(body.Take().whole);
}

TEST(RequestBody, TellsAtOnceOfWhatIsThereAlready) {
  RequestBody body([] {});
  body.Add("early");
  body.End();
  int news = 0;
  body.OnNews([&] { ++news; });
  EXPECT_EQ(news, 1);
  const RequestBody::Taken taken = body.Take();
  EXPECT_EQ(taken.bytes, "early");
  EXPECT_TRUE(taken.whole);
}

TEST(RequestBody, TellsTheGiverOfRoomOnlyWhereThereWasNone) {
  int room = 0;
  RequestBody body([&] { ++room; });
  body.Add("little");
  EXPECT_TRUE(body.HasRoom());
  body.Take();
  EXPECT_EQ(room, 0);
  body.Add(std::string(1 << 20, 'x'));
  EXPECT_FALSE(body.HasRoom());
  body.Take();
  EXPECT_TRUE(body.HasRoom());
  EXPECT_EQ(room, 1);
}

}  // namespace
}  // namespace trainyard::http
