// Answers that come over time, from real servers on loopback: how they end, break, stall and flood.
#include <signal.h>

#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "base/text.h"
#include "tests/support/kube_client.h"

namespace trainyard::kube {
namespace {

using ::testing::HasSubstr;
using testing_support::Protocol;

class Streams : public KubeClient {
 protected:
  std::unique_ptr<BodyReader> Open(std::string target, Transport& transport) {
    auto opened = transport.Open({.target = std::move(target)});
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) return nullptr;
    EXPECT_EQ(opened->head.code, 200);
    return std::move(opened->body);
  }
  std::unique_ptr<BodyReader> Open(std::string target) { return Open(std::move(target), *transport_); }

  void Push(std::string bytes) {
    const auto pushed = Do(*transport_, {.method = "POST", .target = "/push", .body = std::move(bytes)});
    EXPECT_TRUE(pushed.ok()) << pushed.status();
  }

  static std::string ReadExactly(BodyReader& body, std::size_t size) {
    std::string text;
    while (text.size() < size) {
      const auto bytes = body.Read(kPatience);
      EXPECT_TRUE(bytes.ok()) << bytes.status();
      if (!bytes.ok() || bytes->empty()) break;
      text += *bytes;
    }
    return text;
  }
};

INSTANTIATE_TEST_SUITE_P(Protocols, Streams,
                         testing::Values(Protocol::kHttp2, Protocol::kHttps1, Protocol::kHttp1),
                         ProtocolName);

TEST_P(Streams, BringTheBodyAsItComesAndSayWhenItEnds) {
  const auto body = Open("/watch");
  EXPECT_TRUE(absl::IsDeadlineExceeded(body->Read(absl::ZeroDuration()).status()));
  Push("one\n");
  EXPECT_EQ(ReadExactly(*body, 4), "one\n");
  EXPECT_TRUE(absl::IsDeadlineExceeded(body->Read(absl::Milliseconds(10)).status()));
  Push("two\n");
  EXPECT_EQ(ReadExactly(*body, 4), "two\n");
  ASSERT_TRUE(Get(*transport_, "/end").ok());
  EXPECT_EQ(body->Read(kPatience).value(), "");
  EXPECT_EQ(body->Read(kPatience).value(), "");
}

TEST_P(Streams, ReadAnErrorWhole) {
  const auto opened = transport_->Open({.target = "/text"});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->head.code, 500);
  EXPECT_EQ(opened->head.body, "it is broken\n");
  EXPECT_EQ(opened->body, nullptr);
}

TEST_P(Streams, SayUnavailableWhenTheConnectionBreaks) {
  const auto body = Open("/watch");
  Push("one\n");
  EXPECT_EQ(ReadExactly(*body, 4), "one\n");
  (void)Get(*transport_, "/cut");
  const absl::Status status = body->Read(kPatience).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST_P(Streams, EndAReadThatWaitsWhenTheyAreCancelled) {
  const auto body = Open("/watch");
  std::promise<void> reading;
  std::thread reader([&] {
    reading.set_value();
    EXPECT_TRUE(absl::IsCancelled(body->Read(absl::InfiniteDuration()).status()));
  });
  reading.get_future().wait();
  body->Cancel();
  reader.join();
  EXPECT_TRUE(absl::IsCancelled(body->Read(kPatience).status()));
}

TEST_P(Streams, CloseTheirConnectionWhenTheReaderGoes) {
  Open("/watch").reset();
  const SteadyTime deadline = Clock::System().Steady() + kPatience;
  while (Stat(*transport_, "closed") == 0 && Clock::System().Steady() < deadline) {
  }
  EXPECT_EQ(Stat(*transport_, "closed"), 1);
}

TEST_P(Streams, GiveUpOnAServerThatDoesNotAnswer) {
  const auto opened = transport_->Open({.target = "/hang", .timeout = absl::Milliseconds(200)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(opened.status())) << opened.status();
}

TEST_P(Streams, CountAsBrokenWhenNothingAtAllComes) {
  const auto transport = Connect(ConfigOf(*server_), {.stream_idle_limit = absl::Milliseconds(300)});
  const auto body = Open("/watch", *transport);
  const absl::Status status = body->Read(kPatience).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("nothing came from"));
}

TEST_P(Streams, NoticeAServerThatStandsStill) {
  const auto transport = Connect(ConfigOf(*server_), {.stream_idle_limit = absl::Milliseconds(500)});
  const auto body = Open("/watch", *transport);
  server_->Signal(SIGSTOP);
  EXPECT_TRUE(absl::IsUnavailable(body->Read(kPatience).status()));
  const auto late = Do(*transport, {.target = "/echo", .timeout = absl::Milliseconds(200)});
  EXPECT_FALSE(late.ok());
  server_->Signal(SIGCONT);
  EXPECT_TRUE(Get(*transport, "/echo").ok());
}

TEST_P(Streams, HoldTheServerBackWhenTheReaderIsSlowAndNobodyElse) {
  const auto transport = Connect(ConfigOf(*server_), {.stream_buffer_bytes = 100000});
  const auto body = Open("/flood", *transport);
  std::int64_t before = -1;
  std::int64_t now = 0;
  // Until it does not get any further; other requests are answered all the while.
  for (int calm = 0; calm < 20;) {
    before = now;
    const auto responses = transport->DoAll(std::vector<Request>(8, Request{.target = "/echo"}));
    for (const auto& response : responses) ASSERT_TRUE(response.ok()) << response.status();
    now = Stat(*transport, "flooded");
    calm = now == before ? calm + 1 : 0;
  }
  EXPECT_LT(now, 64 << 20) << "what sockets hold, and no more";
  std::size_t got = 0;
  while (got < static_cast<std::size_t>(now) + 10'000'000) {
    const auto bytes = body->Read(kPatience);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    ASSERT_LE(bytes->size(), 300000u);
    got += bytes->size();
  }
}

TEST_P(Streams, LeaveTheOthersAloneWhenThereAreMany) {
  std::vector<std::unique_ptr<BodyReader>> bodies;
  for (int i = 0; i < 100; ++i) bodies.push_back(Open("/watch"));
  Push("event\n");
  for (const auto& body : bodies) EXPECT_EQ(ReadExactly(*body, 6), "event\n");
  bodies.resize(50);
  Push("again\n");
  for (const auto& body : bodies) EXPECT_EQ(ReadExactly(*body, 6), "again\n");
}

TEST_P(Streams, EndWithTheirTransport) {
  const auto body = Open("/watch");
  std::thread waiting([&] { EXPECT_TRUE(absl::IsCancelled(Get(*transport_, "/hang").status())); });
  std::thread opening(
      [&] { EXPECT_TRUE(absl::IsCancelled(transport_->Open({.target = "/hang"}).status())); });
  const auto probe = Connect(ConfigOf(*server_));
  while (IntAt(Json(Get(*probe, "/stats")), {"seen", "/hang"}).value_or(0) < 2) {
  }
  transport_.reset();
  waiting.join();
  opening.join();
  EXPECT_TRUE(absl::IsCancelled(body->Read(kPatience).status()));
  body->Cancel();
}

}  // namespace
}  // namespace trainyard::kube
