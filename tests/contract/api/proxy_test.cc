// The proxy subresources: requests that an API server carries to pods.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <thread>

#include <gmock/gmock.h>
#include <net/if.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "tests/contract/api/api_contract.h"

namespace trainyard::testing {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kProxyTimeout = absl::Seconds(30);

// Where a pod may be said to be: a real API server does not take loopback for it. Empty: nowhere.
std::string PodAddress(bool loopback) {
  if (loopback) return "127.0.0.1";
  std::string found;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  for (const ifaddrs* one = all; one != nullptr && found.empty(); one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    char text[INET_ADDRSTRLEN] = "";
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text, sizeof text);
    found = text;
  }
  ::freeifaddrs(all);
  return found;
}

// What runs in the pod: it tells what it was asked, or says what the test wants it to.
class Backend {
 public:
  explicit Backend(const std::string& ip) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t size = sizeof address;
    TY_CHECK(::inet_pton(AF_INET, ip.c_str(), &address.sin_addr) == 1 &&
                 ::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                 ::listen(fd_.get(), 16) == 0 &&
                 ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0,
             "a port can be had");
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~Backend() {
    {
      MutexLock lock(mu_);
      stopping_ = true;
      changed_.SignalAll();
    }
    ::shutdown(fd_.get(), SHUT_RDWR);
    thread_.join();
  }
  int port() const { return port_; }

  // The next piece of an answer to /stream; an empty one ends it.
  void Say(std::string piece) {
    MutexLock lock(mu_);
    said_.push_back(std::move(piece));
    changed_.SignalAll();
  }
  // That the client of /stream has gone.
  bool AwaitLeft() {
    const SteadyTime deadline = Clock::System().Steady() + kProxyTimeout;
    MutexLock lock(mu_);
    while (!left_ && changed_.WaitUntil(mu_, deadline)) {
    }
    return left_;
  }

 private:
  void Run() {
    while (true) {
      const Fd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd.valid()) return;
      const timeval patience{.tv_sec = 30, .tv_usec = 0};
      ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      Serve(fd.get());
    }
  }

  static std::string Read(int fd, std::size_t most) {
    std::string text(most, '\0');
    const ssize_t got = ::recv(fd, text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }
  static void Write(int fd, std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  static void Answer(int fd, std::string_view head, std::string_view body) {
    Write(fd, StrCat("HTTP/1.1 ", head, "\r\nContent-Length: ", body.size(), "\r\n\r\n", body));
  }
  // Of the head's lines; "" if there is none.
  static std::string Header(std::string_view head, std::string_view name) {
    for (const std::string_view line : Split(head, '\n')) {
      const std::size_t colon = line.find(':');
      if (colon == std::string_view::npos) continue;
      const bool same = std::ranges::equal(line.substr(0, colon), name,
                                           [](char a, char b) { return (a | 0x20) == (b | 0x20); });
      if (same) return std::string(line.substr(colon + 2, line.size() - colon - 3));
    }
    return "";
  }

  void Serve(int fd) {
    std::string text;
    while (text.find("\r\n\r\n") == std::string::npos) {
      const std::string more = Read(fd, 65536);
      if (more.empty()) return;
      text += more;
    }
    const std::size_t end = text.find("\r\n\r\n") + 4;
    const std::string head = text.substr(0, end);
    std::string body = text.substr(end);
    const std::size_t length = ParseNumber<std::size_t>(Header(head, "Content-Length")).value_or(0);
    while (body.size() < length) {
      const std::string more = Read(fd, 65536);
      if (more.empty()) return;
      body += more;
    }
    const std::vector<std::string_view> first = Split(std::string_view(head), ' ');
    const std::string_view target = first[1];
    if (target == "/stream") return Stream(fd);
    if (target == "/moved") return Answer(fd, "302 Found\r\nLocation: /echo", "");
    if (target == "/missing") return Answer(fd, "404 Not Found\r\nContent-Type: text/plain", "no page");
    const Object told{{"method", std::string(first[0])},
                      {"target", std::string(target)},
                      {"authorization", Header(head, "Authorization")},
                      {"connection", Header(head, "Connection")},
                      {"type", Header(head, "Content-Type")},
                      {"uri", Header(head, "X-Forwarded-Uri")},
                      {"bytes", body.size()},
                      {"body", body.substr(0, 100)}};
    Answer(fd, "200 OK\r\nContent-Type: application/json\r\nX-Backend: yes", PrintJson(told));
  }

  void Stream(int fd) {
    Write(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (true) {
      std::string piece;
      {
        MutexLock lock(mu_);
        while (said_.empty() && !stopping_) changed_.Wait(mu_);
        if (said_.empty()) return;
        piece = std::move(said_.front());
        said_.erase(said_.begin());
      }
      if (piece.empty()) break;
      Write(fd, StrCat(Hex32(static_cast<std::uint32_t>(piece.size())), "\r\n", piece, "\r\n"));
    }
    const bool gone = Read(fd, 1).empty();
    MutexLock lock(mu_);
    left_ = gone;
    changed_.SignalAll();
  }

  const Fd fd_;
  int port_ = 0;
  Mutex mu_;
  CondVar changed_;
  std::vector<std::string> said_ TY_GUARDED_BY(mu_);
  bool left_ TY_GUARDED_BY(mu_) = false;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

class Proxies : public ApiContract {
 protected:
  void SetUp() override {
    ApiContract::SetUp();
    if (IsSkipped()) return;
    ip_ = PodAddress(/*loopback=*/GetParam().name != "Real");
  }

  // A pod "web" with a backend in it, and a service of that name before it with the ports "http" (80) and
  // "other" (90), behind which there is nobody.
  void Serve() {
    if (ip_.empty()) GTEST_SKIP() << "this machine has no address that a pod could have";
    backend_ = std::make_unique<Backend>(ip_);
    ASSERT_EQ(Post(In("pods"), R"({"metadata":{"name":"web"},"spec":{"containers":[
                                   {"name":"c","image":"i"}]}})")
                  .code,
              201);
    const std::string status =
        StrCat(R"({"status":{"phase":"Running","podIP":")", ip_, R"(","podIPs":[{"ip":")", ip_, R"("}]}})");
    ASSERT_EQ(Patch(In("pods/web/status"), "merge", status).code, 200);
    MakeService("web");
    MakeEndpoints("web", backend_->port());
  }
  void MakeService(std::string_view name) {
    ASSERT_EQ(Post(In("services"), StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"ports":[
                  {"name":"http","port":80},{"name":"other","port":90}]}})"))
                  .code,
              201);
  }
  void MakeEndpoints(std::string_view name, int port) {
    const std::string address =
        StrCat(R"({"ip":")", ip_, R"(","targetRef":{"kind":"Pod","namespace":")", ns_, R"(","name":"web"}})");
    ASSERT_EQ(
        Post(In("endpoints"), StrCat(R"({"metadata":{"name":")", name, R"("},"subsets":[{"addresses":[)",
                                     address, R"(],"ports":[{"name":"http","port":)", port, "}]}]}"))
            .code,
        201);
  }

  std::string ip_;
  std::unique_ptr<Backend> backend_;
};

INSTANTIATE_TEST_SUITE_P(Apis, Proxies, ::testing::ValuesIn(AllApiKinds()),
                         [](const auto& kind) { return kind.param.name; });

#define SERVE_OR_RETURN()  \
  Serve();                 \
  if (IsSkipped()) return; \
  ASSERT_FALSE(HasFailure())

TEST_P(Proxies, AreListed) {
  const Answer core = Get("/api/v1");
  std::vector<std::string> seen;
  for (const Document& resource : *ArrayAt(core.body, {"resources"})) {
    const std::string_view name = StringAt(resource, {"name"});
    if (name != "services/proxy" && name != "pods/proxy") continue;
    seen.push_back(StrCat(name, " ", StringAt(resource, {"kind"})));
    EXPECT_EQ(*Find(resource, {"verbs"}), *ParseJson(R"(["create","delete","get","patch","update"])"));
  }
  EXPECT_THAT(seen, ::testing::UnorderedElementsAre("services/proxy ServiceProxyOptions",
                                                    "pods/proxy PodProxyOptions"));
}

TEST_P(Proxies, LeadToThePodBehindAServiceByNameOrNumberOfThePort) {
  SERVE_OR_RETURN();
  for (const char* id : {"web:http", "web:80", "http:web:http", "http:web:80", "web%3A80"}) {
    const Answer answer = Get(In(StrCat("services/", id, "/proxy/a/b?x=1&y=%20")));
    EXPECT_EQ(answer.code, 200) << id;
    EXPECT_EQ(answer.Str({"method"}), "GET");
    EXPECT_EQ(answer.Str({"target"}), "/a/b?x=1&y=%20") << id;
  }
}

TEST_P(Proxies, LeadToAPodItself) {
  SERVE_OR_RETURN();
  const Answer answer = Get(In(StrCat("pods/web:", backend_->port(), "/proxy/a/")));
  EXPECT_EQ(answer.code, 200);
  EXPECT_EQ(answer.Str({"target"}), "/a/");
  EXPECT_EQ(answer.Str({"uri"}), In(StrCat("pods/web:", backend_->port(), "/proxy/a/")));
}

TEST_P(Proxies, CarryEveryMethodWithItsBody) {
  SERVE_OR_RETURN();
  const std::string large(std::size_t{5} << 20, 'x');  // more than an object may have
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"}) {
    const Answer small = Send(method, In("services/web:80/proxy/"), "{ no json", "text/odd");
    EXPECT_EQ(small.code, 200) << method;
    EXPECT_EQ(small.Str({"method"}), method);
    EXPECT_EQ(small.Str({"body"}), "{ no json");
    EXPECT_EQ(small.Str({"type"}), "text/odd");
  }
  const Answer answer = Send("POST", In("services/web:80/proxy/"), large);
  EXPECT_EQ(answer.code, 200);
  EXPECT_EQ(IntAt(answer.body, {"bytes"}), large.size());
}

TEST_P(Proxies, KeepTheClientsCredentialsToThemselves) {
  SERVE_OR_RETURN();
  const Answer answer = Get(In("services/web:80/proxy/"));
  EXPECT_EQ(answer.code, 200);
  EXPECT_EQ(answer.Str({"authorization"}), "");
}

TEST_P(Proxies, PassTheBackendsAnswersOnAsTheyAre) {
  SERVE_OR_RETURN();
  std::vector<kube::Request> requests;
  requests.push_back({.target = In("services/web:80/proxy/missing"), .accept = "text/plain"});
  const auto missing = transport_->DoAll(std::move(requests));
  ASSERT_TRUE(missing[0].ok()) << missing[0].status();
  EXPECT_EQ(missing[0]->code, 404);
  EXPECT_EQ(missing[0]->content_type, "text/plain");
  EXPECT_EQ(missing[0]->body, "no page");
  const Answer moved = Get(In("services/web:80/proxy/moved"));
  EXPECT_EQ(moved.code, 302);
  EXPECT_THAT(moved.headers,
              ::testing::Contains(::testing::Pair("Location", HasSubstr(In("services/web:80/proxy/echo")))));
}

TEST_P(Proxies, SendWhoAsksForNothingToTheRoot) {
  SERVE_OR_RETURN();
  const Answer answer = Get(In("services/web:80/proxy?x=1"));
  EXPECT_EQ(answer.code, 301);
  EXPECT_THAT(answer.headers,
              ::testing::Contains(::testing::Pair("Location", In("services/web:80/proxy/?x=1"))));
  EXPECT_EQ(Post(In("services/web:80/proxy"), "x").Str({"target"}), "/");
}

TEST_P(Proxies, PassAnAnswerOnAsItComesAndEndWithItsReader) {
  SERVE_OR_RETURN();
  auto opened = transport_->Open({.target = In("services/web:80/proxy/stream")});
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_EQ(opened->head.code, 200);
  for (const char* piece : {"one\n", "two\n", "three\n"}) {
    backend_->Say(piece);
    std::string got;
    while (got.size() < std::string_view(piece).size()) {
      const auto more = opened->body->Read(kProxyTimeout);
      ASSERT_TRUE(more.ok()) << more.status();
      ASSERT_FALSE(more->empty());
      got += *more;
    }
    EXPECT_EQ(got, piece);
  }
  opened->body.reset();
  backend_->Say("");
  EXPECT_TRUE(backend_->AwaitLeft());
}

TEST_P(Proxies, SayWhatIsMissing) {
  const Answer none = Get(In("services/none:80/proxy/"));
  EXPECT_EQ(none.code, 404);
  EXPECT_EQ(none.Str({"message"}), "services \"none\" not found");
  EXPECT_EQ(Get(In("services/none:http/proxy/")).code, 404);
  EXPECT_EQ(Get(In("pods/none/proxy/")).code, 404);
  EXPECT_EQ(Get(In("services/a:b:c:d/proxy/")).code, 400);
  MakeService("empty");
  ASSERT_EQ(Post(In("endpoints"), R"({"metadata":{"name":"empty"},"subsets":[]})").code, 201);
  const Answer empty = Get(In("services/empty:80/proxy/"));
  EXPECT_EQ(empty.code, 503);
  EXPECT_EQ(empty.reason(), "ServiceUnavailable");
  EXPECT_EQ(empty.Str({"message"}), "no endpoints available for service \"empty\"");
  const Answer port = Get(In("services/empty:81/proxy/"));
  EXPECT_EQ(port.code, 503);
  EXPECT_EQ(port.Str({"message"}), "no service port 81 found for service \"empty\"");
}

TEST_P(Proxies, SayThatTheBackendIsNotThere) {
  SERVE_OR_RETURN();
  const Answer nobody = Get(In("services/web:other/proxy/"));
  EXPECT_EQ(nobody.code, 503);
  EXPECT_EQ(nobody.Str({"message"}), "no endpoints available for service \"web:other\"");
  const int port = backend_->port();
  backend_.reset();
  const Answer refused = Get(In(StrCat("pods/web:", port, "/proxy/")));
  EXPECT_EQ(refused.code, 503);
  EXPECT_EQ(refused.reason(), "ServiceUnavailable");
  EXPECT_EQ(refused.Str({"message"}), StrCat("error trying to reach service: dial tcp ", ip_, ":", port,
                                             ": connect: connection refused"));
}

TEST_P(Proxies, LeadToPodsOnlyWhateverTheEndpointsSay) {
  SERVE_OR_RETURN();
  MakeService("forged");
  ASSERT_EQ(
      Post(In("endpoints"), StrCat(R"({"metadata":{"name":"forged"},"subsets":[{"addresses":[{"ip":")", ip_,
                                   R"("}],"ports":[{"name":"http","port":)", backend_->port(), "}]}]}"))
          .code,
      201);
  EXPECT_EQ(Get(In("services/forged:80/proxy/")).code, 503);
}

}  // namespace
}  // namespace trainyard::testing
