// The real agent's clients: those that may not, those that are slow or too many, and what HTTP asks for.
#include "gmock/gmock.h"
#include "tests/integration/agent_pod.h"

namespace trainyard::agent {
namespace {

using ::testing::HasSubstr;

std::string WithToken(std::string_view token) { return AgentClient::Print("GET", "/status", "", token); }

TEST(AgentClientsTest, LetsInOnlyWhoHasTheToken) {
  const AgentPod pod;
  for (const std::string_view token :
       {"", "the-toke", "the-token2", "THE-TOKEN", "the-tokem", "the-tokenthe-token"}) {
    AgentClient client(pod.port());
    client.Send(WithToken(token));
    const HttpAnswer answer = client.ReadAnswer();
    EXPECT_EQ(answer.code, 401) << token;
    EXPECT_THAT(answer.error(), HasSubstr("Authorization: Bearer TOKEN"));
    EXPECT_EQ(answer.headers.at("www-authenticate"), "Bearer");
  }
  AgentClient without(pod.port());
  without.Send("GET /none HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(without.ReadAnswer().code, 401) << "nor does it tell what there is";
  without.Send("GET /status HTTP/1.1\r\nHost: a\r\nAuthorization: Basic the-token\r\n\r\n");
  EXPECT_EQ(without.ReadAnswer().code, 401);
  without.Send("GET /status HTTP/1.1\r\nHost: a\r\nauthorization: bearer the-token\r\n\r\n");
  EXPECT_EQ(without.ReadAnswer().code, 200);
  without.Send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
  const HttpAnswer health = without.ReadAnswer();
  EXPECT_EQ(health.code, 200);
  EXPECT_EQ(health.body, "ok");
}

TEST(AgentClientsTest, AnswersAStrangerBeforeItsBodyIsSent) {
  const AgentPod pod;
  AgentClient stranger(pod.port());
  stranger.Send("POST /config HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n{");
  EXPECT_EQ(stranger.ReadAnswer().code, 401);
  EXPECT_TRUE(stranger.AwaitClosed());
}

TEST(AgentClientsTest, TakesItsTokenFromAFile) {
  const testing_support::TempFolder folder;
  ASSERT_TRUE(ReplaceFile(folder / "token", "from-a-file\n", 0600, Durability::kProcess).ok());
  const AgentPod pod({.flags = {"--token-file", folder / "token"}, .env = {{"TRAINYARD_AGENT_TOKEN", ""}}});
  AgentClient client(pod.port());
  client.Send(WithToken("from-a-file"));
  EXPECT_EQ(client.ReadAnswer().code, 200);
}

TEST(AgentClientsTest, SaysWhatIsWrongWithARequest) {
  const AgentPod pod;
  AgentClient client(pod.port());
  EXPECT_EQ(client.Call("GET", "/none").code, 404);
  EXPECT_THAT(client.Call("GET", "/none").error(), HasSubstr("/status"));
  const HttpAnswer method = client.Call("DELETE", "/run");
  EXPECT_EQ(method.code, 405);
  EXPECT_EQ(method.headers.at("allow"), "GET, POST");
  EXPECT_EQ(client.Call("GET", "/stop").code, 405);
  EXPECT_EQ(client.Call("POST", "/config", "{").code, 400);
  EXPECT_EQ(client.Call("POST", "/stop?grace=soon").code, 400);
  EXPECT_EQ(client.Call("GET", "/status?after=x").code, 400);
  EXPECT_EQ(client.Call("GET", "/status").code, 200) << "all over one connection";
  client.Send("NONSENSE\r\n\r\n");
  const HttpAnswer nonsense = client.ReadAnswer();
  EXPECT_EQ(nonsense.code, 400);
  EXPECT_NE(nonsense.error(), "");
  EXPECT_TRUE(client.AwaitClosed()) << "nobody knows where the next request begins";
}

TEST(AgentClientsTest, BoundsWhatIsSent) {
  const AgentPod pod;
  AgentClient head(pod.port());
  head.Send(StrCat("GET / HTTP/1.1\r\nX: ", std::string(20'000, 'x')));
  EXPECT_EQ(head.ReadAnswer().code, 431);
  AgentClient body(pod.port());
  body.Send(
      "POST /config HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer the-token\r\nContent-Length: "
      "1048577\r\n\r\n");
  EXPECT_EQ(body.ReadAnswer().code, 413);
  const std::string largest = StrCat(R"({"env": {}, "command": ["true"]})", std::string((1 << 20) - 32, ' '));
  ASSERT_EQ(largest.size(), std::size_t{1} << 20);
  EXPECT_EQ(pod.Post("/config", largest).code, 200);
}

TEST(AgentClientsTest, AnswersPipelinedRequestsInOrder) {
  const AgentPod pod;
  AgentClient client(pod.port());
  const std::string config = AgentPod::ShellConfig("echo hello");
  client.Send(StrCat(AgentClient::Print("GET", "/status"), AgentClient::Print("POST", "/config", config),
                     AgentClient::Print("POST", "/run"), AgentClient::Print("GET", "/logs?follow=1"),
                     AgentClient::Print("GET", "/none"),
                     "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
  EXPECT_EQ(client.ReadAnswer().state(), "idle");
  EXPECT_EQ(client.ReadAnswer().state(), "configured");
  EXPECT_NE(client.ReadAnswer().state(), "configured");
  EXPECT_EQ(client.ReadAnswer().body, "hello\n") << "a log to its end";
  EXPECT_EQ(client.ReadAnswer().code, 404);
  EXPECT_EQ(client.ReadAnswer().body, "ok");
  EXPECT_TRUE(client.AwaitClosed());
}

TEST(AgentClientsTest, TellsAClientToGoOnWithItsBody) {
  const AgentPod pod;
  AgentClient client(pod.port());
  client.Send(
      "POST /config HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer the-token\r\nExpect: 100-continue\r\n"
      "Content-Length: 2\r\n\r\n");
  EXPECT_EQ(client.ReadHead().code, 100);
  client.Send("{}");
  EXPECT_EQ(client.ReadAnswer().state(), "configured");
}

TEST(AgentClientsTest, EndsAnOldClientsLogWithTheConnection) {
  const AgentPod pod;
  pod.Run("echo hello");
  pod.AwaitState("exited");
  AgentClient client(pod.port());
  client.Send("GET /logs?follow=1 HTTP/1.0\r\nAuthorization: Bearer the-token\r\n\r\n");
  const HttpAnswer logs = client.ReadAnswer();
  EXPECT_EQ(logs.header("transfer-encoding"), "");
  EXPECT_EQ(logs.body, "hello\n");
}

TEST(AgentClientsTest, ClosesWhoIsSlowOrHasNothingToSay) {
  const AgentPod pod({.flags = {"--request-timeout", "200ms", "--idle-timeout", "400ms"}});
  AgentClient idle(pod.port());
  AgentClient slow(pod.port());
  AgentClient slow_body(pod.port());
  AgentClient waits(pod.port());
  const std::int64_t version = *IntAt(pod.Get("/status").json(), {"version"});
  waits.Send(AgentClient::Print("GET", StrCat("/status?wait=300&after=", version)));
  slow.Send("GET /status HTTP/1.1\r\n");
  slow_body.Send(
      "POST /config HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer the-token\r\nContent-Length: 9\r\n\r\n{");
  EXPECT_EQ(slow.ReadAnswer().code, 408);
  EXPECT_TRUE(slow.AwaitClosed());
  EXPECT_EQ(slow_body.ReadAnswer().code, 408);
  EXPECT_TRUE(idle.AwaitClosed());
  pod.Post("/config", "{}");
  EXPECT_EQ(waits.ReadAnswer().state(), "configured") << "who waits for something is not idle";
}

TEST(AgentClientsTest, LetsAnIdleClientGiveWayToANewOne) {
  const AgentPod pod;
  std::vector<std::unique_ptr<AgentClient>> idle;
  for (int i = 0; i < 64; ++i) {
    idle.push_back(std::make_unique<AgentClient>(pod.port()));
    EXPECT_EQ(idle.back()->Call("GET", "/status").code, 200);
  }
  AgentClient one_more(pod.port());
  EXPECT_EQ(one_more.Call("GET", "/status").code, 200);
  int closed = 0;
  for (const auto& client : idle) {
    client->Send(AgentClient::Print("GET", "/status"));
    if (client->ReadAnswer().code == 0) ++closed;
  }
  EXPECT_EQ(closed, 1);
}

TEST(AgentClientsTest, LetsStrangersGiveWayToTheLauncher) {
  const AgentPod pod;
  std::vector<std::unique_ptr<AgentClient>> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(std::make_unique<AgentClient>(pod.port()));
    strangers.back()->Send("GET /status HTTP/1.1\r\n");
  }
  EXPECT_EQ(pod.Get("/status").code, 200);
}

TEST(AgentClientsTest, TurnsAwayWhoIsOneTooMany) {
  const AgentPod pod;
  ASSERT_EQ(pod.Post("/config", AgentPod::ShellConfig("echo hello")).code, 200);
  std::vector<std::unique_ptr<AgentClient>> following;
  for (int i = 0; i < 64; ++i) {
    following.push_back(std::make_unique<AgentClient>(pod.port()));
    following.back()->Send(AgentClient::Print("GET", "/logs?follow=1"));
    ASSERT_EQ(following.back()->ReadHead().code, 200);
  }
  AgentClient one_more(pod.port());
  const HttpAnswer refused = one_more.ReadAnswer();
  EXPECT_EQ(refused.code, 503);
  EXPECT_THAT(refused.error(), HasSubstr("too many connections"));
  following.pop_back();
  ASSERT_TRUE(Await([&] { return pod.Post("/run").code == 200; })) << "one that hangs up makes room";
  for (const auto& client : following) EXPECT_EQ(client->ReadChunk(), "hello\n");
}

}  // namespace
}  // namespace trainyard::agent
