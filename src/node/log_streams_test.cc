#include "node/log_streams.h"

#include <filesystem>
#include <fstream>
#include <optional>

#include "base/mutex.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node/pod_folder.h"
#include "shim/protocol.h"
#include "tests/support/temp_folder.h"

namespace trainyard::node {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(20);

// What a client has been sent; those who write to it may hold it longer than the test.
class Client : public std::enable_shared_from_this<Client> {
 public:
  // Takes nothing until Take() is called, if it is slow.
  explicit Client(bool slow = false) : slow_(slow) {}

  class Body final : public http::BodyWriter {
   public:
    explicit Body(std::shared_ptr<Client> client) : held_(std::move(client)), client_(*held_) {}
    bool Write(std::shared_ptr<const std::string> piece) override {
      MutexLock lock(client_.mu_);
      client_.text_ += *piece;
      if (client_.slow_) client_.backlog_ += piece->size();
      client_.most_backlog_ = std::max(client_.most_backlog_, client_.backlog_);
      client_.changed_.SignalAll();
      return true;
    }
    std::size_t Backlog() override {
      MutexLock lock(client_.mu_);
      return client_.backlog_;
    }
    void OnRoom(std::size_t /*bytes*/, std::function<void()> /*room*/) override {}
    void Close() override {
      MutexLock lock(client_.mu_);
      client_.closed_ = true;
      client_.changed_.SignalAll();
    }
    void OnGone(std::function<void()> gone) override {
      MutexLock lock(client_.mu_);
      client_.gone_ = std::move(gone);
    }
    ~Body() override {
      MutexLock lock(client_.mu_);
      client_.released_ = true;
      client_.changed_.SignalAll();
    }

   private:
    const std::shared_ptr<Client> held_;
    Client& client_;
  };

  class Answer final : public http::Responder {
   public:
    explicit Answer(std::shared_ptr<Client> client) : held_(std::move(client)), client_(*held_) {}
    void Send(kube::Response response) override {
      MutexLock lock(client_.mu_);
      client_.whole_ = std::move(response);
      client_.closed_ = true;
      client_.changed_.SignalAll();
    }
    std::shared_ptr<http::BodyWriter> Stream(kube::Response head) override {
      MutexLock lock(client_.mu_);
      client_.code_ = head.code;
      return std::make_shared<Body>(held_);
    }

   private:
    const std::shared_ptr<Client> held_;
    Client& client_;
  };

  std::unique_ptr<http::Responder> responder() { return std::make_unique<Answer>(shared_from_this()); }

  bool WaitFor(const std::function<bool(const std::string& text)>& seen) {
    return Wait([&]() TY_REQUIRES(mu_) { return seen(text_); });
  }
  bool WaitClosed() {
    return Wait([this]() TY_REQUIRES(mu_) { return closed_; });
  }
  bool WaitReleased() {
    return Wait([this]() TY_REQUIRES(mu_) { return released_; });
  }
  void Take() {
    MutexLock lock(mu_);
    backlog_ = 0;
  }
  void Leave() {
    std::function<void()> gone;
    {
      MutexLock lock(mu_);
      gone.swap(gone_);
    }
    gone();
  }
  bool closed() {
    MutexLock lock(mu_);
    return closed_;
  }
  std::string text() {
    MutexLock lock(mu_);
    return text_;
  }
  kube::Response whole() {
    MutexLock lock(mu_);
    return whole_.value_or(kube::Response{.code = 0});
  }
  std::size_t most_backlog() {
    MutexLock lock(mu_);
    return most_backlog_;
  }

 private:
  template <typename Condition>
  bool Wait(Condition holds) {
    const SteadyTime deadline = Clock::System().Steady() + kLong;
    MutexLock lock(mu_);
    while (!holds()) {
      if (!changed_.WaitUntil(mu_, deadline)) return false;
    }
    return true;
  }

  const bool slow_;
  Mutex mu_;
  CondVar changed_;
  std::string text_ TY_GUARDED_BY(mu_);
  std::size_t backlog_ TY_GUARDED_BY(mu_) = 0;
  std::size_t most_backlog_ TY_GUARDED_BY(mu_) = 0;
  int code_ TY_GUARDED_BY(mu_) = 0;
  bool closed_ TY_GUARDED_BY(mu_) = false;
  bool released_ TY_GUARDED_BY(mu_) = false;
  std::optional<kube::Response> whole_ TY_GUARDED_BY(mu_);
  std::function<void()> gone_ TY_GUARDED_BY(mu_);
};

class LogStreamsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto streams = LogStreams::Start(home_.path());
    ASSERT_TRUE(streams.ok()) << streams.status();
    streams_ = *std::move(streams);
    ASSERT_TRUE(MakePodFolder(folder_).ok());
    std::filesystem::create_directories(folder_.LogFolder("main"));
  }
  void Print(int attempt, const std::string& line) {
    std::ofstream(folder_.Log("main", attempt), std::ios::app)
        << "2024-05-01T10:00:00.000000000Z stdout F " << line << "\n";
  }
  void Exit(int attempt) {
    std::ofstream(folder_.State(), std::ios::app | std::ios::binary)
        << shim::MessageWriter(shim::kExited).Add(shim::key::kId, RunId("main", attempt)).Take();
  }
  void Read(Client& client, bool follow, bool previous = false) {
    streams_->Read({.ns = "default",
                    .pod = "a",
                    .uid = "uid-1",
                    .container = "main",
                    .previous = previous,
                    .follow = follow},
                   client.responder());
  }

  testing_support::TempFolder home_;
  PodFolder folder_{home_.path(), "uid-1"};
  std::unique_ptr<LogStreams> streams_;
};

TEST_F(LogStreamsTest, SaysThatAContainerHasNotStarted) {
  const auto client = std::make_shared<Client>();
  Read(*client, false);
  ASSERT_TRUE(client->WaitClosed());
  EXPECT_EQ(client->whole().code, 400);
  EXPECT_THAT(client->whole().body, HasSubstr("is waiting to start"));
}

TEST_F(LogStreamsTest, ReadsTheNewestRunAndTheOneBefore) {
  Print(9, "nine");
  Print(10, "ten");
  const auto newest = std::make_shared<Client>();
  Read(*newest, false);
  ASSERT_TRUE(newest->WaitClosed());
  EXPECT_EQ(newest->text(), "ten\n");
  const auto previous = std::make_shared<Client>();
  Read(*previous, false, true);
  ASSERT_TRUE(previous->WaitClosed());
  EXPECT_EQ(previous->text(), "nine\n");
}

TEST_F(LogStreamsTest, SaysThatThereIsNoPreviousRun) {
  Print(0, "first");
  const auto client = std::make_shared<Client>();
  Read(*client, false, true);
  ASSERT_TRUE(client->WaitClosed());
  EXPECT_EQ(client->whole().code, 400);
  EXPECT_THAT(client->whole().body, HasSubstr("previous terminated container"));
}

TEST_F(LogStreamsTest, FollowsUntilTheRunIsOver) {
  Print(0, "one");
  const auto client = std::make_shared<Client>();
  Read(*client, true);
  ASSERT_TRUE(client->WaitFor([](const std::string& text) { return text == "one\n"; }));
  Print(0, "two");
  ASSERT_TRUE(client->WaitFor([](const std::string& text) { return text == "one\ntwo\n"; }));
  EXPECT_FALSE(client->closed());
  Print(0, "three");
  Exit(0);
  ASSERT_TRUE(client->WaitClosed());
  EXPECT_EQ(client->text(), "one\ntwo\nthree\n");
}

TEST_F(LogStreamsTest, WaitsForAClientThatReadsSlowly) {
  const std::string line(1000, 'x');
  for (int count = 0; count < 5000; ++count) Print(0, line);
  const auto client = std::make_shared<Client>(/*slow=*/true);
  Read(*client, false);
  while (!client->closed()) {
    ASSERT_TRUE(client->WaitFor([](const std::string& text) { return !text.empty(); }));
    client->Take();
    std::this_thread::yield();
  }
  EXPECT_EQ(client->text().size(), std::size_t{5000} * 1001);
  EXPECT_LT(client->most_backlog(), std::size_t{2} << 20);
}

TEST_F(LogStreamsTest, LetsGoOfAClientThatHasLeft) {
  Print(0, "one");
  const auto client = std::make_shared<Client>();
  Read(*client, true);
  ASSERT_TRUE(client->WaitFor([](const std::string& text) { return text == "one\n"; }));
  client->Leave();
  EXPECT_TRUE(client->WaitReleased());
  EXPECT_FALSE(client->closed());
}

TEST_F(LogStreamsTest, StopsWhileClientsFollow) {
  Print(0, "one");
  const auto client = std::make_shared<Client>();
  Read(*client, true);
  ASSERT_TRUE(client->WaitFor([](const std::string& text) { return text == "one\n"; }));
  streams_.reset();
  EXPECT_TRUE(client->WaitReleased());
}

}  // namespace
}  // namespace trainyard::node
