#include "shim/protocol.h"

#include "base/ids.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::shim {
namespace {

using ::testing::ElementsAre;

TEST(ShimProtocol, ReadsBackWhatWasWritten) {
  const std::string bytes = MessageWriter(kStart, 42)
                                .Add(key::kId, "main.0")
                                .Add(key::kArg, "sh")
                                .Add(key::kArg, std::string_view("a\0b\n", 4))
                                .Add(key::kTimeout, -5)
                                .Add(key::kCwd, "")
                                .Take();
  const Frame frame = FindFrame(bytes);
  ASSERT_EQ(frame.framing, Framing::kWhole);
  ASSERT_EQ(frame.size, bytes.size());
  const auto message = MessageReader::Parse(bytes);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->verb(), "start");
  EXPECT_EQ(message->tag(), 42u);
  EXPECT_THAT(message->All(key::kArg), ElementsAre("sh", std::string_view("a\0b\n", 4)));
  EXPECT_EQ(message->Number<int>(key::kTimeout), -5);
  EXPECT_EQ(message->Number<unsigned>(key::kTimeout), std::nullopt) << "a negative number is no unsigned one";
  EXPECT_EQ(message->Find(key::kCwd), "");
  EXPECT_EQ(message->Find(key::kEnv), std::nullopt);
}

TEST(ShimProtocol, WaitsForTheRestOfAMessage) {
  const std::string bytes = MessageWriter(kHello, 1).Add(key::kVersion, 1).Take();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(FindFrame(std::string_view(bytes).substr(0, size)).framing, Framing::kIncomplete) << size;
  }
  EXPECT_EQ(FindFrame(bytes + "more").size, bytes.size());
}

TEST(ShimProtocol, CallsALengthBeyondTheLimitGarbage) {
  EXPECT_EQ(FindFrame("GET / HTTP/1.1").framing, Framing::kGarbage);
  EXPECT_EQ(FindFrame("\xff\xff\xff\xff").framing, Framing::kGarbage);
}

TEST(ShimProtocol, RefusesWhatIsNoMessage) {
  const auto frame = [](std::string body) {
    std::string bytes;
    internal::AppendLength(bytes, body.size());
    return bytes + body;
  };
  const auto field = [](std::string_view text) {
    std::string bytes;
    internal::AppendLength(bytes, text.size());
    return bytes += text;
  };
  EXPECT_FALSE(MessageReader::Parse(frame(""))) << "no verb";
  EXPECT_FALSE(MessageReader::Parse(frame(field("hello")))) << "no tag";
  EXPECT_FALSE(MessageReader::Parse(frame(field("hello") + field("x")))) << "a tag that is no number";
  EXPECT_FALSE(MessageReader::Parse(frame(field("hello") + field("1") + field("key"))))
      << "a key without value";
  EXPECT_FALSE(MessageReader::Parse(frame(field("hello") + std::string("\xff\0\0\0", 4))))
      << "a field too long";
  EXPECT_FALSE(MessageReader::Parse(frame("ab"))) << "half a length";
  EXPECT_TRUE(MessageReader::Parse(frame(field("hello") + field("1"))));
}

TEST(ShimProtocol, BoundsTheNumberOfFields) {
  std::string body(4 * (kMaxFields + 2), '\0');
  std::string bytes;
  internal::AppendLength(bytes, body.size());
  EXPECT_FALSE(MessageReader::Parse(bytes + body));
}

TEST(ShimProtocol, NeverReadsBeyondRandomBytes) {
  IdSource dice(7);
  for (int round = 0; round < 20'000; ++round) {
    std::string body;
    for (std::uint64_t size = dice.Below(40); size > 0; --size) {
      body += static_cast<char>(dice.Below(4) == 0 ? dice.Below(256) : dice.Below(6));
    }
    std::string bytes;
    internal::AppendLength(bytes, body.size());
    bytes += body;
    const std::string exact(bytes);  // its end is the allocation's, so that ASan sees a step too far
    if (const auto message = MessageReader::Parse(exact)) {
      EXPECT_LE(message->verb().size(), body.size());
    }
    (void)ParseNested(body);
  }
}

}  // namespace
}  // namespace trainyard::shim
