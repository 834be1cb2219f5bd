#include "kube/event_recorder.h"

#include <set>

#include "base/rfc3339.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/names.h"
#include "tests/support/fake_server.h"

namespace trainyard::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::StartsWith;

ObjectReference Job(std::string_view name = "mnist") {
  return {.api_version = "trainyard.dev/v1", .kind = "TFJob", .key = {"ns", std::string(name)}, .uid = "u"};
}

class EventRecorderTest : public testing::Test {
 protected:
  EventRecorderTest() { Restart({}); }
  void Restart(EventRecorder::Options options) {
    options.component = "trainyard-operator";
    options.instance = "pod-1";
    recorder_.emplace(api_, clock_, IdSource(1), options);
  }
  void Record(std::string_view message, std::string_view reason = "Created", std::string_view job = "mnist") {
    recorder_->Record(Job(job), EventType::kNormal, reason, message);
  }
  // "3 x message" of each event that the server has.
  std::vector<std::string> Stored() {
    recorder_->Flush();
    std::vector<std::string> shown;
    for (const Document& event : server_.FindAll(Resource::Events())) {
      shown.push_back(StrCat(*IntAt(event, {"count"}), " x ", StringAt(event, {"message"})));
    }
    std::ranges::sort(shown);
    return shown;
  }

  ManualClock clock_{absl::FromUnixSeconds(1'714'557'600)};
  FakeServer server_;
  Api api_{server_, clock_, IdSource(1), {.attempts = 1}};
  std::optional<EventRecorder> recorder_;
};

TEST_F(EventRecorderTest, WritesWhatKubectlShows) {
  recorder_->Record(Job(), EventType::kWarning, "BackOff", "Pod \"x\" keeps failing");
  recorder_->Flush();
  const std::vector<Document> events = server_.FindAll(Resource::Events());
  ASSERT_EQ(events.size(), 1u);
  const Document& event = events[0];
  EXPECT_EQ(StringAt(event, {"type"}), "Warning");
  EXPECT_EQ(StringAt(event, {"reason"}), "BackOff");
  EXPECT_EQ(StringAt(event, {"message"}), "Pod \"x\" keeps failing");
  EXPECT_EQ(StringAt(event, {"metadata", "namespace"}), "ns");
  EXPECT_THAT(std::string(StringAt(event, {"metadata", "name"})), StartsWith("mnist."));
  EXPECT_EQ(StringAt(event, {"involvedObject", "kind"}), "TFJob");
  EXPECT_EQ(StringAt(event, {"involvedObject", "name"}), "mnist");
  EXPECT_EQ(StringAt(event, {"involvedObject", "uid"}), "u");
  EXPECT_EQ(StringAt(event, {"involvedObject", "apiVersion"}), "trainyard.dev/v1");
  EXPECT_EQ(StringAt(event, {"source", "component"}), "trainyard-operator");
  EXPECT_EQ(StringAt(event, {"reportingInstance"}), "pod-1");
  EXPECT_EQ(StringAt(event, {"firstTimestamp"}), "2024-05-01T10:00:00Z");
  EXPECT_EQ(*IntAt(event, {"count"}), 1);
}

TEST_F(EventRecorderTest, CountsRepeatsOnOneEvent) {
  for (int i = 0; i < 3; ++i) {
    Record("made pod");
    clock_.Advance(absl::Seconds(10));
  }
  Record("made service");
  EXPECT_THAT(Stored(), ElementsAre("1 x made service", "3 x made pod"));
  for (const Document& event : server_.FindAll(Resource::Events())) {
    if (StringAt(event, {"message"}) != "made pod") continue;
    EXPECT_EQ(StringAt(event, {"firstTimestamp"}), "2024-05-01T10:00:00Z");
    EXPECT_EQ(StringAt(event, {"lastTimestamp"}), "2024-05-01T10:00:20Z");
  }
}

TEST_F(EventRecorderTest, CombinesManySimilarOnes) {
  for (int i = 0; i < 15; ++i) Record(StrCat("made pod ", i));
  const std::vector<std::string> stored = Stored();
  ASSERT_EQ(stored.size(), 10u);
  EXPECT_THAT(stored, testing::Contains("6 x (combined from similar events): made pod 14"));
  Record("lost pod", "Deleted");
  EXPECT_THAT(Stored(), testing::Contains("1 x lost pod")) << "another reason is not similar";
  clock_.Advance(absl::Minutes(11));
  Record("made pod 99");
  EXPECT_THAT(Stored(), testing::Contains("1 x made pod 99")) << "nor is what comes long after";
}

TEST_F(EventRecorderTest, LimitsWhatIsToldAboutOneObject) {
  for (int i = 0; i < 100; ++i) Record("again");
  Record("hello", "Created", "other");
  EXPECT_THAT(Stored(), ElementsAre("1 x hello", "25 x again"));
  EXPECT_EQ(recorder_->Count(), (EventRecorder::Counts{.written = 26, .limited = 75}));
  clock_.Advance(absl::Minutes(5));
  Record("again");
  EXPECT_THAT(Stored(), ElementsAre("1 x hello", "101 x again")) << "those not written were counted";
}

TEST_F(EventRecorderTest, WritesAnewWhatTheServerHasForgotten) {
  Record("made pod");
  Stored();
  const std::string name(StringAt(server_.FindAll(Resource::Events()).at(0), {"metadata", "name"}));
  server_.Remove(Resource::Events(), {"ns", name});
  Record("made pod");
  EXPECT_THAT(Stored(), ElementsAre("2 x made pod"));
  Record("made pod");
  EXPECT_THAT(Stored(), ElementsAre("3 x made pod"));
}

TEST_F(EventRecorderTest, DropsTheOldestWhenThereIsNoRoom) {
  Restart({.room = 2});
  for (const char* message : {"a", "b", "c", "d"}) Record(message);
  EXPECT_THAT(Stored(), ElementsAre("1 x c", "1 x d"));
  EXPECT_EQ(recorder_->Count(), (EventRecorder::Counts{.written = 2, .crowded = 2}));
}

TEST_F(EventRecorderTest, GoesOnWhenTheServerDoesNotTakeOne) {
  server_.SetIntercept([](const Request&) -> std::optional<absl::StatusOr<Response>> {
    return ToResponse({.code = 403, .reason = "Forbidden", .message = "namespace is being terminated"});
  });
  Record("lost");
  recorder_->Flush();
  server_.SetIntercept(nullptr);
  Record("lost");
  EXPECT_THAT(Stored(), ElementsAre("2 x lost")) << "what was to be patched had never been written";
  EXPECT_EQ(recorder_->Count(), (EventRecorder::Counts{.written = 1, .failed = 1}));
}

TEST_F(EventRecorderTest, TakesAnEventWhoseAnswerWasLostForWritten) {
  bool lose = true;
  server_.SetTamper([&](const Request&, absl::StatusOr<Response>& response) {
    if (std::exchange(lose, false)) response = absl::UnknownError("the connection broke");
  });
  Api patient(server_, Clock::System(), IdSource(1), {.attempts = 2, .first = absl::ZeroDuration()});
  EventRecorder recorder(patient, clock_, IdSource(1), {.component = "c"});
  recorder.Record(Job(), EventType::kNormal, "Created", "made pod");
  recorder.Flush();
  EXPECT_EQ(recorder.Count(), (EventRecorder::Counts{.written = 1}));
  EXPECT_EQ(server_.FindAll(Resource::Events()).size(), 1u);
}

TEST_F(EventRecorderTest, PutsEventsOfWhatHasNoNamespaceInTheDefaultOne) {
  recorder_->Record({.api_version = "v1", .kind = "Node", .key = {"", "n1"}}, EventType::kNormal, "Seen",
                    "x");
  recorder_->Flush();
  const auto events = server_.FindAll(Resource::Events());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(StringAt(events[0], {"metadata", "namespace"}), "default");
  EXPECT_EQ(Find(events[0], {"involvedObject", "namespace"}), nullptr);
}

TEST_F(EventRecorderTest, BoundsMessages) {
  Record(std::string(5000, 'x'));
  recorder_->Flush();
  EXPECT_EQ(StringAt(server_.FindAll(Resource::Events()).at(0), {"message"}).size(), 1024u);
}

TEST_F(EventRecorderTest, WritesInItsThreadWhatIsQueuedBeforeItStops) {
  recorder_->Start();
  for (int i = 0; i < 20; ++i) Record("x", "Created", StrCat("job-", i));
  recorder_->Stop();
  EXPECT_EQ(server_.FindAll(Resource::Events()).size(), 20u);
  Record("late");
  EXPECT_EQ(recorder_->Count(), (EventRecorder::Counts{.written = 20, .crowded = 1}));
  recorder_->Stop();
}

TEST_F(EventRecorderTest, DoesNotStopForLongerThanItsGrace) {
  server_.SetIntercept([&](const Request&) -> std::optional<absl::StatusOr<Response>> {
    clock_.Advance(absl::Seconds(10));
    return absl::DeadlineExceededError("no answer");
  });
  for (int i = 0; i < 20; ++i) Record("x", "Created", StrCat("job-", i));
  recorder_->Stop(absl::Seconds(25));
  EXPECT_EQ(recorder_->Count(), (EventRecorder::Counts{.crowded = 17, .failed = 3}));
  EXPECT_EQ(server_.Requests().size(), 3u);
}

TEST(EventNames, AreUniqueAndValid) {
  EventCorrelator correlator(IdSource(1));
  std::set<std::string> names;
  for (int i = 0; i < 1000; ++i) {
    const auto write = correlator.Correlate(
        {.object = Job(std::string(240, 'a') + "-" + std::to_string(i)), .reason = "R"}, SteadyTime());
    ASSERT_TRUE(write.has_value());
    EXPECT_EQ(FindDns1123SubdomainProblem(write->name), "") << write->name;
    names.insert(write->name);
  }
  EXPECT_EQ(names.size(), 1000u);
}

TEST(LruMap, ForgetsWhatWasNotUsedForLongest) {
  LruMap<int> map(2);
  map.Use("a") = 1;
  map.Use("b") = 2;
  EXPECT_EQ(map.Use("a"), 1);
  map.Use("c") = 3;
  EXPECT_EQ(map.size(), 2u);
  EXPECT_EQ(map.Use("a"), 1);
  EXPECT_EQ(map.Use("b"), 0);
}

}  // namespace
}  // namespace trainyard::kube
