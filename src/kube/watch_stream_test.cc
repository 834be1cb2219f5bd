#include "kube/watch_stream.h"

#include <deque>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "base/text.h"
#include "kube/error.h"

namespace trainyard::kube {
namespace {

using ::testing::HasSubstr;

// Gives out what it was given, piece by piece, then ends as it was told to.
class ScriptedBody final : public BodyReader {
 public:
  ScriptedBody(std::deque<std::string> pieces, absl::StatusOr<std::string> end)
      : pieces_(std::move(pieces)), end_(std::move(end)) {}
  absl::StatusOr<std::string> Read(absl::Duration) override {
    if (cancelled_) return absl::CancelledError("cancelled");
    if (pieces_.empty()) return end_;
    std::string piece = std::move(pieces_.front());
    pieces_.pop_front();
    return piece;
  }
  void Cancel() override { cancelled_ = true; }

 private:
  std::deque<std::string> pieces_;
  absl::StatusOr<std::string> end_;
  std::atomic<bool> cancelled_ = false;
};

std::unique_ptr<WatchStream> Stream(std::deque<std::string> pieces, absl::StatusOr<std::string> end = "") {
  return NewWatchStream(std::make_unique<ScriptedBody>(std::move(pieces), std::move(end)), Clock::System(),
                        "pods at https://x");
}

constexpr std::string_view kEvents =
    "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"\xc3\xa9}\\n{\"}}}\n"
    "\r\n"
    "{ \"object\" : { \"a\" : [ 1 , { } ] } , \"type\" : \"MODIFIED\" } \n"
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}\n"
    "{\"type\":\"DELETED\",\"object\":{}}\n";

std::vector<WatchEvent> Expected() {
  return {{WatchEventType::kAdded, "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"\xc3\xa9}\\n{\"}}"},
          {WatchEventType::kModified, "{ \"a\" : [ 1 , { } ] }"},
          {WatchEventType::kBookmark, "{\"metadata\":{\"resourceVersion\":\"9\"}}"},
          {WatchEventType::kDeleted, "{}"}};
}

std::vector<WatchEvent> ReadAll(WatchStream& stream) {
  std::vector<WatchEvent> events;
  while (true) {
    auto event = stream.Next(absl::InfiniteDuration());
    if (!event.ok()) {
      EXPECT_TRUE(absl::IsUnavailable(event.status())) << event.status();
      return events;
    }
    events.push_back(*std::move(event));
  }
}

TEST(WatchStream, ReadsTheSameEventsWhereverTheBytesAreCut) {
  for (std::size_t cut = 0; cut <= kEvents.size(); ++cut) {
    std::deque<std::string> pieces;
    if (cut > 0) pieces.emplace_back(kEvents.substr(0, cut));
    if (cut < kEvents.size()) pieces.emplace_back(kEvents.substr(cut));
    EXPECT_EQ(ReadAll(*Stream(pieces)), Expected()) << cut;
  }
  std::deque<std::string> bytes;
  for (const char c : kEvents) bytes.emplace_back(1, c);
  EXPECT_EQ(ReadAll(*Stream(bytes)), Expected());
}

TEST(WatchStream, TurnsAnErrorEventIntoTheStatusThatItCarries) {
  const auto stream = Stream(
      {"{\"type\":\"ADDED\",\"object\":{}}\n{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
       "\"reason\":\"Expired\",\"message\":\"too old resource "
       "version\"}}\n{\"type\":\"ADDED\",\"object\":{}}\n"});
  EXPECT_TRUE(stream->Next(absl::ZeroDuration()).ok());
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = stream->Next(absl::ZeroDuration()).status();
    EXPECT_TRUE(IsGone(status)) << "also when asked again: " << status;
    EXPECT_THAT(Message(status), HasSubstr("too old resource version"));
  }
}

TEST(WatchStream, AsksToBeResumedAtTheEndAlsoWithinALine) {
  for (const char* last : {"", "{\"type\":\"ADD"}) {
    const auto stream = Stream({StrCat("{\"type\":\"ADDED\",\"object\":{}}\n", last)});
    EXPECT_TRUE(stream->Next(absl::ZeroDuration()).ok());
    const absl::Status status = stream->Next(absl::ZeroDuration()).status();
    EXPECT_TRUE(absl::IsUnavailable(status));
    EXPECT_THAT(Message(status), HasSubstr("pods at https://x"));
  }
}

TEST(WatchStream, GoesOnAfterATimeout) {
  const auto stream = NewWatchStream(
      std::make_unique<ScriptedBody>(std::deque<std::string>{}, absl::DeadlineExceededError("none yet")),
      Clock::System(), "pods");
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(stream->Next(absl::ZeroDuration()).status()));
  }
  stream->Cancel();
  EXPECT_TRUE(absl::IsCancelled(stream->Next(absl::ZeroDuration()).status()));
}

TEST(ParseWatchEvent, RefusesWhatIsNoEvent) {
  for (const char* line : {"x", "[]", "{}", R"({"type":"ADDED"})", R"({"type":"EATEN","object":{}})",
                           R"({"type":5,"object":{}})", R"({"type":"ADDED","object":{)", "null"}) {
    EXPECT_TRUE(absl::IsInternal(ParseWatchEvent(line).status())) << line;
  }
}

TEST(LineCutter, BoundsALine) {
  LineCutter cutter(10);
  cutter.Feed("123456789\n");
  EXPECT_EQ(cutter.Next().value(), "123456789");
  EXPECT_EQ(cutter.Next().value(), std::nullopt);
  for (int i = 0; i < 2; ++i) {
    cutter.Feed("1234");
    EXPECT_EQ(cutter.Next().value(), std::nullopt);
  }
  cutter.Feed("123");
  EXPECT_TRUE(absl::IsResourceExhausted(cutter.Next().status()));
}

TEST(LineCutter, GivesBackLinesThatOutliveItsBuffer) {
  LineCutter cutter(1 << 20);
  std::string expected;
  std::string got;
  for (int i = 0; i < 20000; ++i) {
    const std::string line = StrCat("line ", i, std::string(static_cast<std::size_t>(i % 50), 'x'));
    StrAppend(expected, line, "|");
    cutter.Feed(line.substr(0, line.size() / 2));
    cutter.Feed(StrCat(line.substr(line.size() / 2), "\n"));
    if (i % 7 != 0) continue;
    while (const auto next = cutter.Next().value()) StrAppend(got, *next, "|");
  }
  while (const auto next = cutter.Next().value()) StrAppend(got, *next, "|");
  EXPECT_EQ(got, expected);
}

}  // namespace
}  // namespace trainyard::kube
