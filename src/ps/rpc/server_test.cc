#include "ps/rpc/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "base/fd.h"
#include "base/text.h"
#include "ps/rpc/channel.h"
#include "ps/rpc/message.pb.h"
#include "ps/rpc/spare_memory.h"
#include "ps/rpc/token.h"

namespace trainyard::ps {
namespace {

using ::testing::HasSubstr;

class RpcServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = RpcServer::Start(
        {.token = "secret"}, [](std::unique_ptr<Exchange> exchange) { exchange->Reply(wire::ApplyReply()); });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  absl::Status Call(const std::string& token) {
    Channel channel(StrCat("127.0.0.1:", server_->port()), token);
    wire::ApplyReply reply;
    return channel.Call("Apply", wire::ApplyRequest(), absl::Minutes(2), reply);
  }

  Fd Connect() {
    Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{.sin_family = AF_INET, .sin_port = htons(static_cast<std::uint16_t>(server_->port()))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    return socket;
  }

  std::unique_ptr<RpcServer> server_;
};

TEST_F(RpcServerTest, SaysWhatIsWrongWithAToken) {
  EXPECT_TRUE(Call("secret").ok());
  EXPECT_THAT(std::string(Call("").message()), HasSubstr("no token"));
  EXPECT_THAT(std::string(Call("other").message()), HasSubstr("wrong token: it is not that of this job"));
  EXPECT_TRUE(absl::IsUnauthenticated(Call("other")));
  // A newline cannot come through HTTP/2; where it can, it is named.
  EXPECT_THAT(std::string(CheckSentToken("secret\n", "secret").message()),
              HasSubstr("white space around it"));
  EXPECT_THAT(std::string(CheckSentToken(" secret", "secret").message()), HasSubstr("white space around it"));
  EXPECT_TRUE(CheckSentToken("", "").ok());
}

// A flood is of the same machine as the client that knows the token, and still does not keep it out.
TEST_F(RpcServerTest, AnswersBesideAFloodOfStrangers) {
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  const std::string settings("\0\0\0\4\0\0\0\0\0", 9);
  const std::string huge_frame("\xff\xff\xff\0\0\0\0\0\1", 9);
  const std::vector<std::string> beginnings = {
      "",
      std::string(4096, '\0'),
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),
      "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
      preface,
      preface + settings,
      preface + settings + huge_frame + std::string(4096, 'x'),
  };
  const std::int64_t before = LookAtMemory().resident;
  std::vector<Fd> flood;
  for (int i = 0; i < 350; ++i) {
    flood.push_back(Connect());
    const std::string& bytes = beginnings[static_cast<std::size_t>(i) % beginnings.size()];
    // The server may have closed it already.
    if (!bytes.empty()) (void)!::send(flood.back().get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (i % 50 == 0) {
      EXPECT_TRUE(Call("secret").ok());
      EXPECT_TRUE(absl::IsUnauthenticated(Call("other")));
    }
  }
  EXPECT_TRUE(Call("secret").ok());
  EXPECT_LT(LookAtMemory().resident - before, std::int64_t{256} << 20) << "bytes for 350 strangers";
}

}  // namespace
}  // namespace trainyard::ps
