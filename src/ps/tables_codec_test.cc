#include <cmath>
#include <limits>

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/tables.h"
#include "rapidcheck/gtest.h"

namespace trainyard::ps {
namespace {

using testing::HasSubstr;

std::string Replaced(std::string text, std::string_view what, std::string_view by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what << " in " << text;
  return text.replace(at, what.size(), by);
}

TEST(JobMetaCodec, IsReadable) {
  EXPECT_EQ(
      EncodeMeta({.state = JobState::kFailed,
                  .reason = "trainer-0 ended",
                  .foreground = true,
                  .mode = graph::SyncMode::kAsync,
                  .trainers = 3,
                  .least_trainers = 1,
                  .most_trainers = 5,
                  .slots = 4,
                  .pservers = 2,
                  .generation = 4,
                  .rolled_back_to = 50,
                  .rolled_back_in = 3,
                  .layout = "abc",
                  .previous = {{.layout = "ab", .pservers = 1, .step = 50}},
                  .on_nonfinite = graph::OnNonFinite::kSkip,
                  .checkpoint_every = 10,
                  .checkpoints_asked = 2,
                  .checkpoints_made = 1,
                  .passes = 2,
                  .steps = 60}),
      R"({"state":"failed","reason":"trainer-0 ended","foreground":true,"mode":"async","trainers":3,)"
      R"("least_trainers":1,"most_trainers":5,"slots":4,"pservers":2,"generation":4,"rolled_back_to":50,)"
      R"("rolled_back_in":3,"layout":"abc","previous":{"layout":"ab","pservers":1,"step":50},"on_nonfinite":"skip",)"
      R"("checkpoint_every":10,"checkpoints_asked":2,"checkpoints_made":1,"passes":2,"steps":60})");
}

TEST(JobMetaCodec, RefusesEveryFieldThatIsNotWhatItShouldBe) {
  const std::string good = EncodeMeta(
      {.slots = 2, .rolled_back_to = 7, .previous = {{.layout = "old", .pservers = 2, .step = 7}}});
  ASSERT_TRUE(DecodeMeta(good).ok());
  const std::pair<std::string_view, std::string_view> changes[] = {
      {R"("waiting")", R"("asleep")"},
      {R"("waiting")", "1"},
      {R"("reason":"")", R"("reason":null)"},
      {R"("sync")", R"("both")"},
      {R"("trainers":1)", R"("trainers":0)"},
      {R"("trainers":1)", R"("trainers":1.5)"},
      {R"("trainers":1)", R"("trainers":5000000000)"},
      {R"("pservers":1)", R"("pservers":"1")"},
      {R"("generation":1)", R"("generation":0)"},
      {R"("generation":1)", R"("generation":99999999999999999999)"},
      {R"("rolled_back_to":7)", R"("rolled_back_to":-1)"},
      {R"("rolled_back_to":7)", R"("rolled_back_to":null)"},
      {R"("layout":"")", R"("layout":[])"},
      {R"("layout":"",)", ""},
      {R"("checkpoint_every":100)", R"("checkpoint_every":0)"},
      {R"("passes":1)", R"("passes":0)"},
      {R"("steps":0)", R"("steps":-1)"},
      {R"("foreground":false)", R"("foreground":0)"},
      {R"("trainers":1)", R"("trainers":3)"},  // more than the slots
      {R"("slots":2)", R"("slots":-1)"},
      {R"("step":7)", R"("step":-7)"},
      {R"({"layout":"old")", R"({"layout":7)"},
      {R"("layout":"")", R"("layout":"","more":1)"},
  };
  for (const auto& [from, to] : changes) {
    const auto decoded = DecodeMeta(Replaced(good, from, to));
    EXPECT_TRUE(absl::IsInvalidArgument(decoded.status())) << from << " -> " << to;
  }
}

TEST(JobMetaCodec, NamesTheFieldThatIsWrong) {
  const std::string good = EncodeMeta({});
  EXPECT_THAT(Message(DecodeMeta(Replaced(good, R"("trainers":1)", R"("trainers":-4)")).status()),
              HasSubstr("trainers is -4"));
  EXPECT_THAT(Message(DecodeMeta(Replaced(good, R"("layout")", R"("lay")")).status()),
              HasSubstr("layout is missing"));
  EXPECT_THAT(Message(DecodeMeta(Replaced(good, R"("layout":"")", R"("layout":"","x\ny":1)")).status()),
              HasSubstr(R"("x\ny")"));
}

TEST(GraphPodCodec, RefusesAddressesThatAreNone) {
  const GraphPod pod{.pod_name = "job-trainer-0", .pod_ip = "10.0.0.1", .pod_port = 4000, .incarnation = 2};
  const std::string good = EncodePod(pod);
  EXPECT_EQ(DecodePod(good).value(), pod);
  for (const auto& [from, to] : {std::pair<std::string_view, std::string_view>{"4000", "-1"},
                                 {"4000", "65536"},
                                 {"10.0.0.1", ""},
                                 {"10.0.0.1", "10.0.0.1 "},
                                 {"10.0.0.1", "a/b"},
                                 {"job-trainer-0", ""},
                                 {R"("incarnation":2)", R"("incarnation":-2)"}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodePod(Replaced(good, from, to)).status())) << to;
  }
}

TEST(GraphPod, PutsBracketsAroundAddressesWithColons) {
  EXPECT_EQ((GraphPod{.pod_ip = "10.0.0.1", .pod_port = 4000}.Address()), "10.0.0.1:4000");
  EXPECT_EQ((GraphPod{.pod_ip = "::1", .pod_port = 4000}.Address()), "[::1]:4000");
}

TEST(CheckpointsCodec, RefusesStepsThatAreOutOfOrder) {
  GraphCheckpoints checkpoints{{{.step = 4, .file = "a"}, {.step = 2, .file = "b"}}};
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeCheckpoints(EncodeCheckpoints(checkpoints)).status()));
}

TEST(CheckpointsCodec, TellsWhatIsWrongInsideOfAList) {
  const std::string text = R"({"kept":[{"step":1,"file":"a","bytes":1,"crc32c":4294967296,"layout":""}]})";
  EXPECT_THAT(Message(DecodeCheckpoints(text).status()), HasSubstr("kept: crc32c is 4294967296"));
}

TEST(OutputCodec, KeepsWhatIsNoNumber) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Output output{.values = {{"loss", {3}, {NAN, kInfinity, -kInfinity}}}};
  const std::string text = EncodeOutput(output);
  EXPECT_THAT(text, HasSubstr(R"(["nan","inf","-inf"])"));
  const Output read = DecodeOutput(text).value();
  EXPECT_TRUE(std::isnan(read.values[0].values[0]));
  EXPECT_EQ(read.values[0].values[1], kInfinity);
  EXPECT_EQ(read.values[0].values[2], -kInfinity);
}

TEST(OutputCodec, RefusesWhatDoesNotFitTogether) {
  const std::string good = EncodeOutput({.values = {{"loss", {2}, {0.5, 1}}}});
  ASSERT_TRUE(DecodeOutput(good).ok());
  for (const auto& [from, to] : {std::pair<std::string_view, std::string_view>{"[2]", "[1]"},
                                 {"[2]", "[-2]"},
                                 {"[2]", "[1099511627776,2]"},
                                 {"[2]", "[1,1,1,1,1,1,1,1,2]"},
                                 {"0.5", R"("half")"},
                                 {"0.5", "null"},
                                 {"loss", "lo ss"},
                                 {"1970-01-01T00:00:00+00:00", "infinite-future"},
                                 {"1970-01-01T00:00:00+00:00", "1970-01-01T01:00:00+01:00"},
                                 {"1970-01-01T00:00:00+00:00", " 1970-01-01T00:00:00+00:00"}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeOutput(Replaced(good, from, to)).status())) << to;
  }
}

TEST(OutputCodec, TakesTheFirstNumbersOfALargeTensor) {
  const Output output{.values = {{"w", {4, 1000}, std::vector<double>(kMaxOutputValues, 1)}}};
  EXPECT_EQ(DecodeOutput(EncodeOutput(output)).value(), output);
}

std::string AnyText() { return *rc::gen::container<std::string>(rc::gen::inRange<char>(' ', '~' + 1)); }
std::int64_t AnyCount() {
  return *rc::gen::inRange<std::int64_t>(0, std::numeric_limits<std::int64_t>::max());
}

RC_GTEST_PROP(TableProperties, WhatIsWrittenIsRead, ()) {
  JobMeta meta{.state = *rc::gen::element(JobState::kWaiting, JobState::kRunning, JobState::kComplete,
                                          JobState::kFailed),
               .reason = AnyText(),
               .foreground = *rc::gen::arbitrary<bool>(),
               .mode = *rc::gen::element(graph::SyncMode::kSync, graph::SyncMode::kAsync),
               .trainers = *rc::gen::inRange(1, 100001),
               .pservers = *rc::gen::inRange(1, 100001),
               .generation = AnyCount() / 2 + 1,
               .layout = AnyText(),
               .checkpoint_every = *rc::gen::inRange(1, 1000),
               .passes = *rc::gen::inRange(1, 1000),
               .steps = AnyCount()};
  if (*rc::gen::arbitrary<bool>()) meta.rolled_back_to = AnyCount();
  if (*rc::gen::arbitrary<bool>()) meta.slots = meta.trainers;
  if (*rc::gen::arbitrary<bool>())
    meta.previous = {.layout = AnyText(), .pservers = *rc::gen::inRange(1, 100001), .step = AnyCount()};
  RC_ASSERT(DecodeMeta(EncodeMeta(meta)).value() == meta);

  GraphCheckpoints checkpoints;
  std::int64_t step = 0;
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
    step += *rc::gen::inRange(0, 100);
    checkpoints.kept.push_back({.step = step,
                                .file = "f" + AnyText(),
                                .bytes = static_cast<std::uint64_t>(AnyCount()),
                                .crc32c = *rc::gen::arbitrary<std::uint32_t>(),
                                .layout = AnyText()});
  }
  RC_ASSERT(DecodeCheckpoints(EncodeCheckpoints(checkpoints)).value() == checkpoints);
}

RC_GTEST_PROP(TableProperties, OutputsKeepTheirNumbersToTheLastBit, ()) {
  Output output{.generation = AnyCount(),
                .pass = AnyCount(),
                .step = AnyCount(),
                .time = absl::FromUnixNanos(*rc::gen::arbitrary<std::int64_t>())};
  OutputValue value{.name = "v"};
  const int count = *rc::gen::inRange(0, 5);
  value.dims = {count};
  for (int i = 0; i < count; ++i) {
    const double number = std::bit_cast<double>(*rc::gen::arbitrary<std::uint64_t>());
    value.values.push_back(std::isnan(number) ? 0 : number);
  }
  output.values.push_back(value);
  RC_ASSERT(DecodeOutput(EncodeOutput(output)).value() == output);
}

// Every decoder, for bytes that may be anything.
void DecodeAll(const std::string& text) {
  for (const absl::Status& status : {DecodeMeta(text).status(), DecodePod(text).status(),
                                     DecodeCheckpoints(text).status(), DecodeOutput(text).status()}) {
    RC_ASSERT(absl::IsInvalidArgument(status));
  }
}

RC_GTEST_PROP(TableProperties, RandomBytesAreErrors, ()) { DecodeAll(*rc::gen::arbitrary<std::string>()); }

RC_GTEST_PROP(TableProperties, DamagedValuesAreErrorsOrValues, ()) {
  std::string text = *rc::gen::element(
      EncodeMeta({.reason = "r", .rolled_back_to = 3}), EncodePod({"pod", "::1", 1, 1}),
      EncodeCheckpoints({{{.step = 1, .file = "f", .bytes = 3, .crc32c = 9, .layout = "l"}}}),
      EncodeOutput({.values = {{"loss", {2}, {0.5, NAN}}}}));
  for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
    text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
  }
  text.resize(*rc::gen::inRange<std::size_t>(0, text.size() + 1));
  for (const absl::Status& status : {DecodeMeta(text).status(), DecodePod(text).status(),
                                     DecodeCheckpoints(text).status(), DecodeOutput(text).status()}) {
    RC_ASSERT((status.ok() || absl::IsInvalidArgument(status)));
  }
}

}  // namespace
}  // namespace trainyard::ps
