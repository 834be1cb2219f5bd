#include "http/client.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/access.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "http/calls.h"
#include "http/service.h"

namespace trainyard::http {
namespace {

using ::testing::HasSubstr;

Fd ConnectOnLoopback(std::uint16_t port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return socket;
}

// An address whose SYNs are dropped, as by a service network that is not up yet: the kernel does that while
// the queue of a listening socket is full. Open() serves what comes.
class Swallower {
 public:
  Swallower() : listener_(*Listen({.host = "127.0.0.1"})), port_(*PortOf(listener_)) {
    EXPECT_EQ(::listen(listener_.get(), 0), 0);
    first_ = ConnectOnLoopback(port_);  // fills it
  }
  ~Swallower() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  std::string url() const { return StrCat("http://127.0.0.1:", port_); }

  void Open() {
    first_.Reset();
    thread_ = std::thread([this] {
      while (!stopping_) {
        pollfd waiting{.fd = listener_.get(), .events = POLLIN, .revents = 0};
        if (::poll(&waiting, 1, 10) <= 0) continue;
        const Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        char request[4096];
        if (!socket.valid() || ::read(socket.get(), request, sizeof request) <= 0) continue;
        constexpr std::string_view kAnswer =
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
        (void)!::write(socket.get(), kAnswer.data(), kAnswer.size());
      }
    });
  }

 private:
  const Fd listener_;
  const std::uint16_t port_;
  Fd first_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

TEST(Client, OutlivesAnAddressThatSwallowsConnectionsAndSpeaksWhenItAnswers) {
  Swallower server;
  const auto transport = NewClient({.server = server.url()}, {.connect_timeout = absl::Milliseconds(20)});
  ASSERT_TRUE(transport.ok()) << transport.status();
  for (int round = 0; round < 10; ++round) {
    for (const auto& response : (*transport)->DoAll(std::vector<Request>(8, Request{.target = "/x"}))) {
      ASSERT_TRUE(absl::IsUnavailable(response.status())) << response.status();
      EXPECT_THAT(Message(response.status()), HasSubstr(StrCat("cannot connect to ", server.url())));
    }
    EXPECT_TRUE(absl::IsUnavailable((*transport)->Open({.target = "/x"}).status()));
  }
  server.Open();
  absl::StatusOr<Response> answer = absl::UnknownError("not asked");
  for (int tries = 0; tries < 1000 && !answer.ok(); ++tries)
    answer = std::move((*transport)->DoAll({{.target = "/x"}}).front());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, "ok");
}

TEST(Client, RefusesATargetThatIsTooLongAndGoesOn) {
  Swallower server;
  server.Open();
  const auto transport = NewClient({.server = server.url()});
  const auto answers =
      (*transport)->DoAll({{.target = "/" + std::string(10'000'000, 'x')}, {.target = "/x"}});
  EXPECT_TRUE(absl::IsInvalidArgument(answers[0].status())) << answers[0].status();
  EXPECT_TRUE(answers[1].ok()) << answers[1].status();
}

// ---- calls

// What became of a call.
class Outcome {
 public:
  void Set(const absl::StatusOr<Answer>& answer) {
    const MutexLock lock(mu_);
    answer_ = answer;
    changed_.Signal();
  }
  absl::StatusOr<Answer> Await() {
    const MutexLock lock(mu_);
    while (!answer_) changed_.Wait(mu_);
    return *answer_;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::optional<absl::StatusOr<Answer>> answer_ TY_GUARDED_BY(mu_);
};

class CallsTest : public testing::Test {
 protected:
  CallsTest() {
    auto service = Service::Start({}, [this](const ServiceRequest& request, ServiceExchange& exchange) {
      if (request.path == "/stream") {
        stream_ = exchange.Begin("text/plain");
        stream_->Write("piece");
      } else {
        exchange.Send({.code = request.path == "/no" ? 409 : 200,
                       .body = request.path == "/no" ? R"({"error":"it is taken"})"
                                                     : StrCat(request.method, request.path, request.body,
                                                              request.Header("Authorization"))});
      }
    });
    EXPECT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
    calls_ = *Calls::Start();
  }
  std::string Url(std::string_view path) const { return StrCat("http://", service_->address(), path); }

  std::shared_ptr<ServiceStream> stream_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<Calls> calls_;
};

TEST_F(CallsTest, AnswerInTheOrderOfTheCalls) {
  const auto answers = calls_->DoAll({{.method = "POST", .url = Url("/a"), .token = "t", .body = "{}"},
                                      {.url = Url("/no")},
                                      {.url = Url("/b"), .delay = absl::Milliseconds(1)}});
  ASSERT_TRUE(answers[0].ok() && answers[1].ok() && answers[2].ok());
  EXPECT_EQ(answers[0]->body, "POST/a{}Bearer t");
  EXPECT_EQ(answers[1]->code, 409);
  EXPECT_EQ(ErrorOf(*answers[1]), "it is taken");
  EXPECT_EQ(answers[2]->body, "GET/b");
}

TEST_F(CallsTest, SayUnavailableWhereNobodyListens) {
  const std::string url = Url("/a");
  service_.reset();
  const auto answers = calls_->DoAll({{.url = url}});
  EXPECT_TRUE(absl::IsUnavailable(answers[0].status())) << answers[0].status();
  EXPECT_THAT(Message(answers[0].status()), HasSubstr(url));
}

TEST_F(CallsTest, EndWithCancelledBeforeTheyBeginAndWhileABodyComes) {
  Outcome later;
  Outcome followed;
  Outcome first_piece;
  const auto delayed = calls_->Begin({.url = Url("/a"), .delay = absl::Hours(1)},
                                     [&](const absl::StatusOr<Answer>& answer) { later.Set(answer); });
  const auto following = calls_->Follow(
      {.url = Url("/stream")},
      [&](std::string_view piece) { first_piece.Set(Answer{.body = std::string(piece)}); },
      [&](const absl::StatusOr<Answer>& answer) { followed.Set(answer); });
  EXPECT_EQ(first_piece.Await()->body, "piece");
  calls_->Cancel(delayed);
  calls_->Cancel(following);
  EXPECT_TRUE(absl::IsCancelled(later.Await().status()));
  EXPECT_TRUE(absl::IsCancelled(followed.Await().status()));
}

TEST_F(CallsTest, EndWithCancelledWhenTheirMakerGoes) {
  Outcome later;
  calls_->Begin({.url = Url("/a"), .delay = absl::Hours(1)},
                [&](const absl::StatusOr<Answer>& answer) { later.Set(answer); });
  calls_.reset();
  EXPECT_TRUE(absl::IsCancelled(later.Await().status()));
}

}  // namespace
}  // namespace trainyard::http
