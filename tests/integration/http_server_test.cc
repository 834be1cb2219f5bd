// The HTTPS server over real sockets: clients that behave, clients that do not, and many of them.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/executor.h"
#include "base/process.h"
#include "base/status.h"
#include "base/text.h"
#include "http/pki.h"
#include "http/server.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tls_client.h"

namespace trainyard::http {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing_support::ConnectTcp;
using testing_support::TempFolder;
using testing_support::TlsClient;

constexpr std::string_view kGet = "GET /get HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer good\r\n\r\n";
constexpr std::string_view kWatch = "GET /watch HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer good\r\n\r\n";

// Watchers, and how many have gone, as an API server would keep them.
class Streams {
 public:
  void Add(std::shared_ptr<BodyWriter> writer) {
    writer->OnGone([this] {
      MutexLock lock(mu_);
      ++gone_;
      changed_.SignalAll();
    });
    MutexLock lock(mu_);
    writers_.push_back(std::move(writer));
    changed_.SignalAll();
  }
  void AwaitCount(std::size_t count) {
    MutexLock lock(mu_);
    while (writers_.size() < count) changed_.Wait(mu_);
  }
  void AwaitGone(int count) {
    MutexLock lock(mu_);
    while (gone_ < count) changed_.Wait(mu_);
  }
  std::vector<std::shared_ptr<BodyWriter>> writers() {
    MutexLock lock(mu_);
    return writers_;
  }
  int gone() {
    MutexLock lock(mu_);
    return gone_;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::vector<std::shared_ptr<BodyWriter>> writers_ TY_GUARDED_BY(mu_);
  int gone_ TY_GUARDED_BY(mu_) = 0;
};

class HttpServerTest : public testing::Test {
 protected:
  HttpServerTest() {
    authority_ = *MakeAuthority("test-ca", absl::Now());
    const KeyPair own = *MakeServerCertificate(authority_, {"localhost", "127.0.0.1"}, absl::Now());
    options_.certificate_pem = own.certificate_pem;
    options_.key_pem = own.key_pem;
    options_.client_ca_pem = authority_.certificate_pem;
    Start();
  }

  void Start() {
    server_.reset();
    auto server = Server::Start(options_,
                                JudgeByToken(
                                    [](std::string_view token) -> std::optional<Identity> {
                                      if (!SameSecret(token, "good")) return std::nullopt;
                                      return Identity{.user = "alice"};
                                    },
                                    "the server"),
                                [this](ServerRequest request, std::unique_ptr<Responder> responder) {
                                  Handle(std::move(request), std::move(responder));
                                });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  void Handle(ServerRequest request, std::unique_ptr<Responder> responder) {
    const std::string& target = request.request.target;
    if (target == "/watch") {
      streams_.Add(responder->Stream({.content_type = "application/json;stream=watch"}));
    } else if (target == "/late") {
      std::shared_ptr<Responder> shared = std::move(responder);
      executor_.Post([shared] { shared->Send({.body = "late"}); });
    } else if (target == "/large") {
      responder->Send({.body = std::string(5'000'000, 'x')});
    } else {
      std::string groups;
      for (const std::string& group : request.identity.groups) StrAppend(groups, "+", group);
      responder->Send({.body = StrCat(request.request.method, " ", target, " by ", request.identity.user,
                                      groups, " body ", request.request.body.size())});
    }
  }

  testing_support::TlsClientOptions ClientOptions() const {
    return {.port = server_->port(), .ca_pem = authority_.certificate_pem};
  }
  std::unique_ptr<TlsClient> Connect() const {
    auto client = TlsClient::Connect(ClientOptions());
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  static std::string Ask(TlsClient& client, std::string_view request) {
    EXPECT_TRUE(client.Send(request).ok());
    const auto answer = client.ReadAnswer();
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.value_or("");
  }

  // Runs curl with the authority's certificate and the token; what it prints, and how it ends.
  std::string Curl(std::vector<std::string> arguments, std::string_view token = "good") const {
    const TempFolder folder;
    std::ofstream(folder / "ca") << authority_.certificate_pem;
    std::vector<std::string> argv = {
        "curl",        "-sS", "--noproxy", "*",  "--cacert",
        folder / "ca", "-m",  "30",        "-H", StrCat("Authorization: Bearer ", token)};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    auto child = Child::Spawn({.argv = argv, .stdout_path = folder / "out", .stderr_path = folder / "out"});
    EXPECT_TRUE(child.ok()) << child.status();
    const auto exit = child->Wait(absl::Seconds(60));
    std::ifstream file(folder / "out", std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), {}) + "|" + PrintExit(*exit);
  }
  std::string Url(std::string_view path) const { return StrCat("https://localhost:", server_->port(), path); }

  Streams streams_;
  KeyPair authority_;
  ServerOptions options_;
  Executor executor_;
  std::unique_ptr<Server> server_;
};

TEST_F(HttpServerTest, ServesCurl) {
  EXPECT_EQ(Curl({Url("/get")}), "GET /get by alice body 0|exited 0");
  EXPECT_EQ(Curl({Url("/a"), Url("/late"), Url("/b")}),
            "GET /a by alice body 0lateGET /b by alice body 0|exited 0");
  EXPECT_THAT(Curl({"-I", Url("/get")}), AllOf(HasSubstr("Content-Length: 25"), HasSubstr("exited 0")));
  EXPECT_THAT(Curl({"-i", Url("/get")}, "bad"),
              AllOf(HasSubstr("401 Unauthorized"), HasSubstr(R"({"error":"Unauthorized)")));
  EXPECT_THAT(Curl({Url("/large")}), AllOf(testing::SizeIs(5'000'009), EndsWith("x|exited 0")));
}

TEST_F(HttpServerTest, TakesBodiesOfEveryKindFromCurl) {
  const TempFolder folder;
  std::ofstream(folder / "body") << std::string(2'000'000, 'b');
  const std::string data = StrCat("@", folder / "body");
  EXPECT_EQ(Curl({"--data-binary", data, Url("/p")}), "POST /p by alice body 2000000|exited 0");
  EXPECT_EQ(Curl({"-H", "Expect: 100-continue", "--data-binary", data, Url("/p")}),
            "POST /p by alice body 2000000|exited 0");
  EXPECT_EQ(Curl({"-H", "Transfer-Encoding: chunked", "-X", "PUT", "--data-binary", data, Url("/p")}),
            "PUT /p by alice body 2000000|exited 0");
}

TEST_F(HttpServerTest, RefusesTooLargeABodyInAWayThatTheClientHears) {
  const TempFolder folder;
  std::ofstream(folder / "body") << std::string(20'000'000, 'b');
  for (const char* expect : {"Expect:", "Expect: 100-continue"}) {
    EXPECT_THAT(Curl({"-i", "-H", expect, "--data-binary", StrCat("@", folder / "body"), Url("/p")}),
                AllOf(HasSubstr("413 Content Too Large"), HasSubstr("larger than 3145728 bytes")))
        << expect;
  }
}

TEST_F(HttpServerTest, AgreesOnHttp11AndNothingBelowTls12) {
  EXPECT_EQ(Connect()->protocol(), "http/1.1");
  auto options = ClientOptions();
  options.max_version = TLS1_2_VERSION;
  const auto client = TlsClient::Connect(options);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_THAT(Ask(**client, kGet), EndsWith("GET /get by alice body 0"));
  options.max_version = TLS1_1_VERSION;
  EXPECT_FALSE(TlsClient::Connect(options).ok());
}

TEST_F(HttpServerTest, KnowsUsersByTheirCertificates) {
  const KeyPair user = *MakeClientCertificate(authority_, "bob", {"ops", "dev"}, absl::Now());
  auto options = ClientOptions();
  options.certificate_pem = user.certificate_pem;
  options.key_pem = user.key_pem;
  for (const int version : {0, TLS1_2_VERSION}) {
    options.max_version = version;
    const auto client = TlsClient::Connect(options);
    ASSERT_TRUE(client.ok()) << client.status();
    EXPECT_THAT(Ask(**client, "GET /get HTTP/1.1\r\nHost: h\r\n\r\n"),
                EndsWith("GET /get by bob+ops+dev body 0"));
  }
}

TEST_F(HttpServerTest, RefusesCertificatesOfOthersAndThoseThatHaveEnded) {
  const KeyPair other = *MakeAuthority("other-ca", absl::Now());
  const KeyPair stranger = *MakeClientCertificate(other, "bob", {"system:masters"}, absl::Now());
  const KeyPair ended =
      *MakeClientCertificate(authority_, "bob", {"system:masters"}, absl::Now() - absl::Hours(24 * 400));
  for (const KeyPair& pair : {stranger, ended}) {
    auto options = ClientOptions();
    options.certificate_pem = pair.certificate_pem;
    options.key_pem = pair.key_pem;
    const auto client = TlsClient::Connect(options);
    if (!client.ok()) continue;  // in TLS 1.3 the client hears of it only when it reads
    EXPECT_TRUE(!(*client)->Send(kGet).ok() || (*client)->ReadToEnd().empty());
  }
}

TEST_F(HttpServerTest, TellsWhoSpeaksPlainHttp) {
  for (const char* method : {"GET", "DELETE"}) {
    const auto fd = ConnectTcp(server_->port());
    ASSERT_TRUE(fd.ok()) << fd.status();
    const std::string request = StrCat(method, " / HTTP/1.1\r\nHost: h\r\n\r\n");
    ASSERT_EQ(::send(fd->get(), request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
    char buffer[1000];
    const ssize_t got = ::recv(fd->get(), buffer, sizeof buffer, MSG_WAITALL);
    ASSERT_GT(got, 0) << method;
    EXPECT_THAT(std::string(buffer, static_cast<std::size_t>(got)),
                AllOf(StartsWith("HTTP/1.0 400 Bad Request\r\n"),
                      EndsWith("Client sent an HTTP request to an HTTPS server.\n")));
  }
}

TEST_F(HttpServerTest, OutlivesWhateverIsSentInPlaceOfTls) {
  std::string garbage = "\x16\x03\x01\x02";
  for (int i = 0; i < 1000; ++i) garbage += static_cast<char>(i * 37);
  for (std::size_t size = 1; size < garbage.size(); size += 97) {
    const auto fd = ConnectTcp(server_->port());
    ASSERT_TRUE(fd.ok()) << fd.status();
    ASSERT_GT(::send(fd->get(), garbage.data(), size, MSG_NOSIGNAL), 0);
    ::shutdown(fd->get(), SHUT_WR);
    char buffer[1000];
    while (::recv(fd->get(), buffer, sizeof buffer, 0) > 0) {
    }
  }
  EXPECT_THAT(Ask(*Connect(), kGet), EndsWith("GET /get by alice body 0"));
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  const auto client = Connect();
  std::string all;
  for (int i = 0; i < 200; ++i) {
    StrAppend(all, "GET ", i % 3 == 0 ? "/late" : StrCat("/", i),
              " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer good\r\n\r\n");
  }
  ASSERT_TRUE(client->Send(all).ok());
  for (int i = 0; i < 200; ++i) {
    const auto answer = client->ReadAnswer();
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_THAT(*answer, EndsWith(i % 3 == 0 ? "late" : StrCat("GET /", i, " by alice body 0")));
  }
}

TEST_F(HttpServerTest, ClosesOnWhoIsTooSlow) {
  options_.head_timeout = absl::Milliseconds(100);
  options_.body_timeout = absl::Milliseconds(100);
  options_.idle_timeout = absl::Milliseconds(100);
  Start();
  for (const std::string_view part :
       {std::string_view("GET / HT"),
        std::string_view(
            "PUT / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer good\r\nContent-Length: 9\r\n\r\na")}) {
    const auto client = Connect();
    ASSERT_TRUE(client->Send(part).ok());
    EXPECT_THAT(client->ReadToEnd(), StartsWith("HTTP/1.1 408 "));
  }
  const auto idle = Connect();
  Ask(*idle, kGet);
  EXPECT_EQ(idle->ReadToEnd(), "");
  const auto silent = ConnectTcp(server_->port());
  char byte = 0;
  EXPECT_EQ(::recv(silent->get(), &byte, 1, 0), 0) << "no handshake at all";
}

TEST_F(HttpServerTest, ClosesOnWhoTakesNothing) {
  options_.write_timeout = absl::Milliseconds(200);
  Start();
  const auto client = Connect();
  ASSERT_TRUE(client->Send(kWatch).ok());
  streams_.AwaitCount(1);
  const auto piece = std::make_shared<const std::string>(1'000'000, 'x');
  for (int i = 0; i < 12; ++i) streams_.writers()[0]->Write(piece);
  streams_.AwaitGone(1);
  EXPECT_FALSE(streams_.writers()[0]->Write(piece));
}

TEST_F(HttpServerTest, CutsAWatcherThatFallsTooFarBehind) {
  options_.max_stream_backlog_bytes = 3'000'000;
  Start();
  const auto client = Connect();
  ASSERT_TRUE(client->Send(kWatch).ok());
  streams_.AwaitCount(1);
  const auto piece = std::make_shared<const std::string>(1'000'000, 'x');
  int written = 0;
  while (streams_.writers()[0]->Write(piece)) ++written;
  EXPECT_GE(written, 3);
  streams_.AwaitGone(1);
  EXPECT_THAT(client->ReadToEnd(), testing::Not(EndsWith("0\r\n\r\n"))) << "the body breaks off";
}

TEST_F(HttpServerTest, NoticesWatchersThatLeave) {
  std::vector<std::unique_ptr<TlsClient>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(Connect());
    ASSERT_TRUE(clients.back()->Send(kWatch).ok());
    ASSERT_TRUE(clients.back()->ReadUntil("\r\n\r\n").ok());
  }
  streams_.AwaitCount(4);
  EXPECT_EQ(streams_.gone(), 0);
  clients[0]->EndWriting();
  streams_.AwaitGone(1);
  clients[1]->Reset();
  streams_.AwaitGone(2);
  ::shutdown(clients[2]->fd(), SHUT_WR);  // without TLS's word for it
  streams_.AwaitGone(3);
  server_.reset();
  streams_.AwaitGone(4);
  for (const auto& writer : streams_.writers()) {
    EXPECT_FALSE(writer->Write(std::make_shared<const std::string>("x")));
  }
}

TEST_F(HttpServerTest, AnswersWhoClosesItsSideAfterAsking) {
  const auto client = Connect();
  ASSERT_TRUE(client->Send("GET /late HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer good\r\n\r\n").ok());
  client->EndWriting();
  EXPECT_THAT(client->ReadToEnd(), EndsWith("late"));
}

TEST_F(HttpServerTest, SendsOneEventToAThousandWatchers) {
  constexpr int kCount = 1000;
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::max(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, 4096));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<std::unique_ptr<TlsClient>> clients;
  for (int i = 0; i < kCount; ++i) {
    clients.push_back(Connect());
    ASSERT_TRUE(clients.back()->Send(kWatch).ok());
    ASSERT_TRUE(clients.back()->ReadUntil("\r\n\r\n").ok());
  }
  streams_.AwaitCount(kCount);
  const auto event = std::make_shared<const std::string>(StrCat(std::string(1500, 'e'), "\n"));
  for (const auto& writer : streams_.writers()) ASSERT_TRUE(writer->Write(event));
  for (const auto& client : clients) {
    EXPECT_EQ(client->ReadUntil("e\n\r\n").value_or(""), StrCat("5dd\r\n", *event, "\r\n"));
  }
  clients.clear();
  streams_.AwaitGone(kCount);
}

TEST_F(HttpServerTest, MakesRoomForNewConnectionsByClosingIdleOnes) {
  options_.max_connections = 3;
  Start();
  const auto watcher = Connect();
  ASSERT_TRUE(watcher->Send(kWatch).ok());
  ASSERT_TRUE(watcher->ReadUntil("\r\n\r\n").ok());
  std::vector<std::unique_ptr<TlsClient>> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(Connect());
    EXPECT_THAT(Ask(*clients.back(), kGet), EndsWith("body 0")) << i;
  }
  EXPECT_EQ(streams_.gone(), 0) << "a watcher is not idle";
  EXPECT_EQ(clients[0]->ReadToEnd(), "");
}

TEST_F(HttpServerTest, ServesAClientAmongMoreStrangersThanItTakes) {
  options_.max_connections = 40;
  options_.max_strangers = 20;
  Start();
  const auto watcher = Connect();
  ASSERT_TRUE(watcher->Send(kWatch).ok());
  ASSERT_TRUE(watcher->ReadUntil("\r\n\r\n").ok());
  std::vector<Fd> silent;
  std::vector<std::unique_ptr<TlsClient>> halves;
  for (int i = 0; i < 200; ++i) {
    auto socket = ConnectTcp(server_->port());
    ASSERT_TRUE(socket.ok()) << socket.status();
    silent.push_back(*std::move(socket));
    if (i % 20 != 0) continue;
    halves.push_back(Connect());
    ASSERT_TRUE(halves.back()->Send("GET /healthz HTTP/1.1\r\nX: ").ok());
  }
  EXPECT_THAT(Ask(*Connect(), kGet), EndsWith("body 0"));
  EXPECT_EQ(halves[0]->ReadToEnd(), "") << "a request without its end is no reason to stay";
  EXPECT_EQ(streams_.gone(), 0) << "strangers do not push a watcher out";
}

TEST_F(HttpServerTest, WaitsWithNewConnectionsWhenNoneIsIdle) {
  options_.max_connections = 1;
  Start();
  auto watcher = Connect();
  ASSERT_TRUE(watcher->Send(kWatch).ok());
  ASSERT_TRUE(watcher->ReadUntil("\r\n\r\n").ok());
  std::string answer;
  std::thread next([&] { answer = Ask(*Connect(), kGet); });
  streams_.AwaitCount(1);
  watcher.reset();
  next.join();
  EXPECT_THAT(answer, EndsWith("body 0"));
}

TEST_F(HttpServerTest, GoesOnWhenDescriptorsHaveRunOut) {
#ifdef TRAINYARD_SANITIZED
  GTEST_SKIP() << "a sanitizer needs descriptors itself, and takes an object for none without them";
#endif
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  auto client = Connect();
  Ask(*client, kGet);
  const Fd spare(
      ::open("/dev/null", O_RDONLY | O_CLOEXEC));  // not a connection: the server must not wait for one
  std::vector<Fd> hoard;
  rlimit low = before;
  low.rlim_cur = static_cast<rlim_t>(spare.get()) + 50;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  while (true) {
    Fd fd(::dup(spare.get()));
    if (!fd.valid()) break;
    hoard.push_back(std::move(fd));
  }
  hoard.pop_back();
  const auto waiting = ConnectTcp(server_->port());  // takes the last one: none is left for the server
  EXPECT_THAT(Ask(*client, kGet), EndsWith("body 0")) << "who is connected is served";
  hoard.clear();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(waiting.ok()) << waiting.status();
  EXPECT_THAT(Ask(*Connect(), kGet), EndsWith("body 0"));
}

TEST_F(HttpServerTest, SaysThatThePortIsTaken) {
  options_.listen.port = server_->port();
  const auto second = Server::Start(options_, nullptr, nullptr);
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(Message(second.status()), HasSubstr("another process has the port"));
  options_.listen.host = "localhost";
  EXPECT_TRUE(absl::IsInvalidArgument(Server::Start(options_, nullptr, nullptr).status()));
}

TEST_F(HttpServerTest, SaysWhichCertificateIsWrong) {
  ServerOptions wrong = options_;
  wrong.certificate_pem = "none";
  EXPECT_THAT(Message(Server::Start(wrong, nullptr, nullptr).status()), HasSubstr("server's certificate"));
  wrong = options_;
  wrong.key_pem = authority_.key_pem;
  EXPECT_THAT(Message(Server::Start(wrong, nullptr, nullptr).status()), HasSubstr("does not belong"));
  wrong = options_;
  wrong.client_ca_pem = "none";
  EXPECT_THAT(Message(Server::Start(wrong, nullptr, nullptr).status()), HasSubstr("client certificates"));
}

TEST_F(HttpServerTest, StopsWhileAnswersAreStillBeingMade) {
  std::vector<std::unique_ptr<TlsClient>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(Connect());
    std::string many;
    for (int k = 0; k < 50; ++k)
      StrAppend(many, "GET /late HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer good\r\n\r\n");
    ASSERT_TRUE(clients.back()->Send(many).ok());
  }
  server_.reset();
  for (const auto& client : clients) client->ReadToEnd();
  EXPECT_FALSE(ConnectTcp(0).ok());
}

}  // namespace
}  // namespace trainyard::http
