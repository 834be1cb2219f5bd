#include "kube/credentials.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "base/text.h"
#include "kube/exec_credentials.h"
#include "tests/support/temp_folder.h"

namespace trainyard::kube {
namespace {

using ::testing::HasSubstr;
using testing_support::TempFolder;

void WriteText(const std::string& path, std::string_view text) { std::ofstream(path) << text; }

void WriteScript(const std::string& path, std::string_view text) {
  WriteText(path, StrCat("#!/bin/sh\n", text));
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

std::size_t CountLines(const std::string& path) {
  std::ifstream file(path);
  std::size_t lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  return lines;
}

// The Authorization header, or the error.
std::string Authorization(Credentials& credentials) {
  const auto credential = credentials.Get();
  if (!credential.ok()) return std::string(Message(credential.status()));
  for (const auto& [name, value] : credential->headers) {
    if (name == "Authorization") return value;
  }
  return "none";
}

TEST(Headers, AreAsTheStandardSays) {
  EXPECT_EQ(BearerHeader("abc").second, "Bearer abc");
  EXPECT_EQ(BasicHeader("Aladdin", "open sesame").second, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
}

TEST(TokenFile, IsReadAgainAfterAMinute) {
  const TempFolder folder;
  ManualClock clock;
  WriteText(folder / "token", "one\n");
  const auto credentials = NewTokenFileCredentials(folder / "token", "", {}, clock);
  EXPECT_EQ(Authorization(*credentials), "Bearer one");
  WriteText(folder / "token", "two\n");
  clock.Advance(absl::Seconds(59));
  EXPECT_EQ(Authorization(*credentials), "Bearer one");
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(Authorization(*credentials), "Bearer two");
}

TEST(TokenFile, IsReadAgainWhenItsTokenIsRefusedButNotForAnOlderOne) {
  const TempFolder folder;
  ManualClock clock;
  WriteText(folder / "token", "one");
  const auto credentials = NewTokenFileCredentials(folder / "token", "", {}, clock);
  const Credential one = credentials->Get().value();
  WriteText(folder / "token", "two");
  credentials->Refuse(one);
  EXPECT_EQ(Authorization(*credentials), "Bearer two");
  WriteText(folder / "token", "three");
  credentials->Refuse(one);
  EXPECT_EQ(Authorization(*credentials), "Bearer two") << "nobody has refused that one";
}

TEST(TokenFile, ServesOnWithWhatItHadWhileTheFileIsGone) {
  const TempFolder folder;
  ManualClock clock;
  WriteText(folder / "token", "one");
  const auto credentials = NewTokenFileCredentials(folder / "token", "", {}, clock);
  EXPECT_EQ(Authorization(*credentials), "Bearer one");
  std::filesystem::remove(folder / "token");
  clock.Advance(absl::Minutes(2));
  EXPECT_EQ(Authorization(*credentials), "Bearer one");
}

TEST(TokenFile, FallsBackOrSaysWhichFileIsMissing) {
  const TempFolder folder;
  ManualClock clock;
  EXPECT_EQ(Authorization(*NewTokenFileCredentials(folder / "token", "fixed", {}, clock)), "Bearer fixed");
  const auto credentials = NewTokenFileCredentials(folder / "token", "", {}, clock);
  EXPECT_TRUE(absl::IsUnauthenticated(credentials->Get().status()));
  EXPECT_THAT(Authorization(*credentials), HasSubstr(folder / "token"));
  WriteText(folder / "token", "  \n");
  EXPECT_THAT(Authorization(*credentials), HasSubstr("is empty"));
  WriteText(folder / "token", "two\nlines\n");
  EXPECT_THAT(Authorization(*credentials), HasSubstr("more than one line"));
}

TEST(TokenFile, KeepsWhatElseIsPresented) {
  const TempFolder folder;
  ManualClock clock;
  WriteText(folder / "token", "one");
  const auto credentials = NewTokenFileCredentials(
      folder / "token", "",
      {.headers = {{"Impersonate-User", "bob"}}, .certificate_pem = "c", .key_pem = "k"}, clock);
  EXPECT_EQ(credentials->Get().value(),
            (Credential{.headers = {{"Impersonate-User", "bob"}, {"Authorization", "Bearer one"}},
                        .certificate_pem = "c",
                        .key_pem = "k"}));
}

// ---- plugins

constexpr char kV1[] = "client.authentication.k8s.io/v1";

std::string Answer(std::string_view status) {
  return StrCat(R"({"kind":"ExecCredential","apiVersion":")", kV1, R"(","status":)", status, "}");
}

TEST(ParseExecAnswer, TakesTokensCertificatesAndTheirEnd) {
  const auto token =
      ParseExecAnswer(Answer(R"({"token":"t","expirationTimestamp":"2024-01-01T00:00:00Z"})"), kV1);
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->credential.headers, Credential{.headers = {BearerHeader("t")}}.headers);
  EXPECT_EQ(token->expires, absl::FromCivil(absl::CivilDay(2024, 1, 1), absl::UTCTimeZone()));
  const auto pair = ParseExecAnswer(Answer(R"({"clientCertificateData":"C","clientKeyData":"K"})"), kV1);
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_EQ(pair->credential, (Credential{.certificate_pem = "C", .key_pem = "K"}));
  EXPECT_EQ(pair->expires, absl::InfiniteFuture());
}

TEST(ParseExecAnswer, SaysWhatIsWrong) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "not valid JSON"},
      {"{}", "does not print an ExecCredential"},
      {R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","status":{"token":"t"}})",
       "the kubeconfig says client.authentication.k8s.io/v1"},
      {Answer("{}"), "neither a token nor a client certificate"},
      {Answer(R"({"clientKeyData":"K"})"), "without the other"},
      {Answer(R"({"token":"a\r\nX-Evil: 1"})"), "more than one line"},
      {Answer(R"({"token":"t","expirationTimestamp":"tomorrow"})"), "is no time"},
  };
  for (const auto& [output, error] : cases) {
    const absl::Status status = ParseExecAnswer(output, kV1).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << output;
    EXPECT_THAT(Message(status), HasSubstr(error)) << output;
  }
}

class Plugin : public testing::Test {
 protected:
  std::unique_ptr<Credentials> Make(std::string_view script) {
    WriteScript(folder_ / "plugin", StrCat("echo run >> ", folder_ / "runs", "\n", script));
    ExecPlugin plugin{.user = "bob", .api_version = kV1, .command = folder_ / "plugin", .args = {"a b", "c"}};
    plugin.env = {{"EXTRA", "from the config"}};
    return NewExecCredentials(plugin, {}, clock_);
  }
  std::size_t Runs() { return CountLines(folder_ / "runs"); }

  TempFolder folder_;
  ManualClock clock_{absl::FromCivil(absl::CivilDay(2024, 1, 1), absl::UTCTimeZone())};
};

TEST_F(Plugin, IsGivenItsArgumentsAndEnvironment) {
  const auto credentials =
      Make(StrCat("printf '%s|' \"$@\" \"$EXTRA\" \"$HOME\" \"$KUBERNETES_EXEC_INFO\" > ", folder_ / "seen",
                  "\necho '", Answer(R"({"token":"t"})"), "'\n"));
  EXPECT_EQ(Authorization(*credentials), "Bearer t");
  std::ifstream file(folder_ / "seen");
  const std::string seen(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(seen, StrCat("a b|c|from the config|", ::getenv("HOME") == nullptr ? "" : ::getenv("HOME"),
                         R"(|{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",)"
                         R"("spec":{"interactive":false}}|)"));
}

TEST_F(Plugin, RunsAgainWhenItsAnswerHasExpired) {
  const auto credentials =
      Make(StrCat("echo '", Answer(R"({"token":"t","expirationTimestamp":"2024-01-01T01:00:00Z"})"), "'\n"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Authorization(*credentials), "Bearer t");
  EXPECT_EQ(Runs(), 1u);
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(Authorization(*credentials), "Bearer t");
  EXPECT_EQ(Runs(), 2u);
}

TEST_F(Plugin, RunsAgainOnceWhenItsTokenIsRefused) {
  const auto credentials = Make(
      StrCat("n=$(wc -l < ", folder_ / "runs", ")\nprintf '", Answer(R"({"token":"t%s"})"), "' $((n))\n"));
  const Credential first = credentials->Get().value();
  credentials->Refuse(first);
  EXPECT_EQ(Authorization(*credentials), "Bearer t2");
  credentials->Refuse(first);
  EXPECT_EQ(Authorization(*credentials), "Bearer t2");
  EXPECT_EQ(Runs(), 2u);
}

TEST_F(Plugin, SaysHowItFailedAndIsTriedAgain) {
  const auto fails = Make("exit 3\n");
  EXPECT_TRUE(absl::IsUnauthenticated(fails->Get().status()));
  EXPECT_THAT(Authorization(*fails), HasSubstr("user \"bob\""));
  EXPECT_THAT(Authorization(*fails), HasSubstr("exited 3"));
  EXPECT_EQ(Runs(), 3u);
  EXPECT_THAT(Authorization(*Make("echo nonsense\n")), HasSubstr("not valid JSON"));
  EXPECT_THAT(Authorization(*Make("yes | head -c 2000000\n")), HasSubstr("more than 1 MiB"));
}

TEST_F(Plugin, ThatIsMissingIsNamedWithItsHint) {
  const ExecPlugin plugin{.user = "bob",
                          .api_version = kV1,
                          .command = "no-such-program-here",
                          .install_hint = "Install it with: get no-such-program-here"};
  const auto credentials = NewExecCredentials(plugin, {}, clock_);
  EXPECT_TRUE(absl::IsUnauthenticated(credentials->Get().status()));
  EXPECT_THAT(Authorization(*credentials), HasSubstr("no-such-program-here"));
  EXPECT_THAT(Authorization(*credentials), HasSubstr("Install it with"));
}

TEST_F(Plugin, ThatDoesNotEndIsGivenUp) {
  const ExecPlugin plugin{.user = "bob",
                          .api_version = kV1,
                          .command = "sleep",
                          .args = {"1000"},
                          .timeout = absl::Milliseconds(50)};
  EXPECT_THAT(Authorization(*NewExecCredentials(plugin, {}, clock_)), HasSubstr("it does not end"));
}

TEST_F(Plugin, ThatMustAskItsUserIsRefused) {
  const ExecPlugin plugin{.user = "bob", .api_version = kV1, .command = "true", .interactive_only = true};
  EXPECT_THAT(Authorization(*NewExecCredentials(plugin, {}, clock_)), HasSubstr("interactiveMode"));
}

}  // namespace
}  // namespace trainyard::kube
