#include "kube/pod_history.h"

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_server.h"

namespace trainyard::kube {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;

GonePod Gone(int number, std::string log = "") {
  return {.pod = StrCat("w-", number),
          .uid = StrCat("uid-", number),
          .member = "worker-0",
          .node = "node-1",
          .cause = "exited 1",
          .exit_code = 1,
          .began = absl::FromUnixSeconds(number),
          .ended = absl::FromUnixSeconds(number + 10),
          .log = std::move(log)};
}

HistoryOwner Owner() {
  return {.ns = "default", .kind = "tfjob", .job = "mnist", .reference = Object{{"uid", "job-uid"}}};
}

TEST(LastLines, AreWholeLinesThatFit) {
  bool cut = true;
  EXPECT_EQ(LastLines("one\ntwo\n", 100, &cut), "one\ntwo\n");
  EXPECT_FALSE(cut);
  EXPECT_EQ(LastLines("one\ntwo\nthree\n", 9, &cut), "three\n");
  EXPECT_TRUE(cut);
  EXPECT_EQ(LastLines("one\ntwo\nthree\n", 10), "two\nthree\n");
  EXPECT_EQ(LastLines("a line that is too long by itself\n", 8), " itself\n") << "or a part of the last one";
  EXPECT_EQ(LastLines("text", 0), "");
  EXPECT_EQ(LastLines("\xff\xfe!", 100), "\xef\xbf\xbd\xef\xbf\xbd!") << "no bytes that JSON cannot have";
}

TEST(History, IsReadAsItWasWritten) {
  GonePod all = Gone(1, "last words\n");
  all.signal = 9;
  all.reason = "OOMKilled";
  all.cut = true;
  const GonePod little{.pod = "p", .uid = "u", .cause = "deleted"};
  const Document map = AddToHistory(nullptr, Owner(), {all, little});
  EXPECT_EQ(StringAt(map, {"metadata", "name"}), "mnist.tfjob.history");
  EXPECT_EQ(StringAt(map, {"metadata", "annotations", "trainyard.dev/history-of"}), "tfjob/mnist");
  EXPECT_EQ(ArrayAt(map, {"metadata", "ownerReferences"})->size(), 1);
  EXPECT_THAT(ParseHistory(*ParseJson(PrintJson(map))), ElementsAre(little, all)) << "the first to go first";
}

TEST(History, KnowsAPodOnceAndAsItWasSeenLast) {
  const GonePod going{.pod = "w-1", .uid = "uid-1", .cause = "scaled down", .log = "one\n"};
  const Document first = AddToHistory(nullptr, Owner(), {going});
  const GonePod ended = Gone(1);
  const Document second = AddToHistory(&first, Owner(), {ended, Gone(2)});
  const auto history = ParseHistory(second);
  ASSERT_THAT(history, SizeIs(2));
  EXPECT_EQ(history[0].exit_code, 1);
  EXPECT_EQ(history[0].cause, "exited 1; scaled down");
  EXPECT_EQ(history[0].log, "one\n") << "what could still be read then";
  const Document third = AddToHistory(&second, Owner(), {ended});
  EXPECT_EQ(ParseHistory(third)[0].cause, "exited 1; scaled down")
      << "a cause that is known is not added again";
}

TEST(History, IsBoundedAndForgetsTheOldestFirst) {
  const HistoryLimits limits{.pods = 5, .bytes_per_log = 1000, .bytes = 4000};
  std::string line(99, 'x');
  line += "\n";
  std::string log;
  for (int i = 0; i < 20; ++i) log += line;
  Document map;
  for (int i = 0; i < 20; ++i) {
    const Document before = map;
    map = AddToHistory(i == 0 ? nullptr : &before, Owner(), {Gone(i, log)}, limits);
  }
  const auto history = ParseHistory(map);
  ASSERT_THAT(history, SizeIs(5));
  EXPECT_EQ(history.back().pod, "w-19");
  EXPECT_EQ(history.back().log.size(), 1000);
  EXPECT_TRUE(history.back().cut) << "and says that there was more";
  EXPECT_LT(history.front().log.size(), 500);
}

TEST(History, CountsWhatIsStoredAndNotWhatWasWritten) {
  const HistoryLimits limits{.pods = 100, .bytes_per_log = 4000, .bytes = 20'000};
  std::string colours;
  for (int i = 0; i < 1000; ++i) colours += "\x1b[1m\n";  // each byte of which may become six
  std::vector<GonePod> gone;
  for (int i = 0; i < 30; ++i) gone.push_back(Gone(i, colours));
  const Document map = AddToHistory(nullptr, Owner(), gone, limits);
  std::size_t stored = 0;
  for (const auto& member : *ObjectAt(map, {"data"})) stored += Text(member.value()).size();
  EXPECT_LE(stored, limits.bytes + 30 * 300) << "logs, and the few words about each pod";
  EXPECT_THAT(ParseHistory(map), SizeIs(30));
}

TEST(LastLines, CutNoCharacterInTwo) {
  EXPECT_EQ(LastLines("\xe4\xb8\xad\xe6\x96\x87", 4), "\xe6\x96\x87");
  EXPECT_LE(LastLines("\xe4\xb8\xad\xe6\x96\x87", 5).size(), 5);
}

TEST(PodHistory, HasNoLogWhereTheKubeletCannotReadOne) {
  FakeServer server;
  std::string log = "unable to retrieve container logs for containerd://4f1";
  server.SetIntercept(
      [&](const Request&) { return std::optional<absl::StatusOr<Response>>(Response{.body = log}); });
  const auto collect = [&](std::string_view uid) {
    const auto pod = ParsePod(StrCat(R"({"metadata":{"name":"p","namespace":"default","uid":")", uid,
                                     R"("},"status":{"phase":"Failed","containerStatuses":[
                                     {"name":"main","state":{"terminated":{"exitCode":1}}}]}})"));
    return PodHistory(server, Clock::System()).Collect({{.pod = &*pod, .member = "worker-0"}}).at(0).log;
  };
  EXPECT_EQ(collect("u1"), "");
  log = "step 1\n";
  EXPECT_EQ(collect("u2"), "step 1\n");
}

TEST(History, OfSomethingElseIsEmpty) {
  EXPECT_THAT(ParseHistory(*ParseJson(R"({"data":{"pod-1":"{","pod-2":7,"x":"{}","pod-3":"{}"}})")),
              SizeIs(0));
  EXPECT_THAT(ParseHistory(Document()), SizeIs(0));
}

}  // namespace
}  // namespace trainyard::kube
