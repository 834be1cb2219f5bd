#include "ps/deal.h"

#include <algorithm>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rapidcheck/gtest.h"

namespace trainyard::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Deal, BeginsPartIOfNAtIOfTheWhole) {
  EXPECT_THAT(Deal({{0, 10}}, 3), ElementsAre(Ranges{{0, 3}}, Ranges{{3, 6}}, Ranges{{6, 10}}));
}

TEST(Deal, CutsAcrossRanges) {
  EXPECT_THAT(Deal({{0, 2}, {10, 14}, {20, 22}}, 2),
              ElementsAre(Ranges{{0, 2}, {10, 12}}, Ranges{{12, 14}, {20, 22}}));
}

TEST(Deal, GivesNothingToSomeIfThereAreFewerRecordsThanParts) {
  EXPECT_THAT(Deal({{5, 7}}, 4), ElementsAre(IsEmpty(), Ranges{{5, 6}}, IsEmpty(), Ranges{{6, 7}}));
}

TEST(Deal, CountsBeyondWhatAProductHolds) {
  const std::int64_t large = std::int64_t{1} << 62;
  const auto parts = Deal({{0, large}}, 100000);
  EXPECT_EQ(parts.front().front(), (Range{0, large / 100000}));
  EXPECT_EQ(parts.back().back().end, large);
}

TEST(Take, LeavesWhatWasNotTaken) {
  Ranges from = {{0, 10}, {20, 30}};
  ASSERT_TRUE(Take(from, {{2, 4}, {8, 10}, {20, 25}}).ok());
  EXPECT_THAT(from, ElementsAre(Range{0, 2}, Range{4, 8}, Range{25, 30}));
}

TEST(Take, RefusesWhatIsNotAllThereAndTakesNothing) {
  for (const Ranges& taken : {Ranges{{9, 11}}, {{10, 20}}, {{15, 22}}, {{0, 1}, {30, 31}}, {{-1, 1}}}) {
    Ranges from = {{0, 10}, {20, 30}};
    const absl::Status status = Take(from, taken);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << Print(taken);
    EXPECT_THAT(from, ElementsAre(Range{0, 10}, Range{20, 30}));
  }
}

TEST(Take, RefusesRangesThatAreOutOfOrderEmptyOrOverlap) {
  for (const Ranges& taken : {Ranges{{4, 6}, {2, 3}}, {{4, 4}}, {{2, 5}, {4, 6}}, {{5, 3}}}) {
    Ranges from = {{0, 10}};
    EXPECT_TRUE(absl::IsFailedPrecondition(Take(from, taken)));
  }
}

TEST(Take, NamesTheRecordsThatWereUsedTwice) {
  Ranges from = {{0, 5}};
  const absl::Status status = Take(from, {{3, 8}});
  EXPECT_THAT(std::string(status.message()), HasSubstr("3-7"));
}

TEST(Ranges, AreJoinedWhereTheyTouch) {
  EXPECT_THAT(Join({{0, 2}, {8, 9}}, {{2, 4}, {6, 8}}), ElementsAre(Range{0, 4}, Range{6, 9}));
}

TEST(Ranges, ArePrintedWithTheirLastRecord) {
  EXPECT_EQ(Print(Ranges{{0, 100}, {120, 150}}), "0-99,120-149");
  EXPECT_EQ(Print(Ranges{}), "");
}

// Ranges in order that do not touch.
Ranges AnyRanges() {
  Ranges ranges;
  std::int64_t at = 0;
  const int count = *rc::gen::inRange(0, 8);
  for (int i = 0; i < count; ++i) {
    at += *rc::gen::inRange(1, 20);
    const std::int64_t begin = at;
    at += *rc::gen::inRange(1, 40);
    ranges.push_back({begin, at});
  }
  return ranges;
}

bool IsTidy(const Ranges& ranges) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].size() <= 0) return false;
    if (i > 0 && ranges[i - 1].end >= ranges[i].begin) return false;
  }
  return true;
}

std::set<std::int64_t> RecordsOf(const Ranges& ranges) {
  std::set<std::int64_t> records;
  for (const Range& range : ranges) {
    for (std::int64_t record = range.begin; record < range.end; ++record) records.insert(record);
  }
  return records;
}

RC_GTEST_PROP(DealProperties, LosesNothingOverlapsNothingAndIsFair, ()) {
  const Ranges ranges = AnyRanges();
  const int parts = *rc::gen::inRange(1, 12);
  const std::vector<Ranges> dealt = Deal(ranges, parts);
  RC_ASSERT(dealt.size() == static_cast<std::size_t>(parts));
  Ranges together;
  std::int64_t size = 0;
  for (const Ranges& part : dealt) {
    RC_ASSERT(IsTidy(part));
    RC_ASSERT(SizeOf(part) >= SizeOf(ranges) / parts);
    RC_ASSERT(SizeOf(part) <= SizeOf(ranges) / parts + 1);
    size += SizeOf(part);
    together = Join(together, part);
  }
  RC_ASSERT(size == SizeOf(ranges));
  RC_ASSERT(together == ranges);
}

RC_GTEST_PROP(DealProperties, WhatWasDealtCanBeTakenOnce, ()) {
  const Ranges ranges = AnyRanges();
  const std::vector<Ranges> dealt = Deal(ranges, *rc::gen::inRange(1, 12));
  const Ranges& part = dealt[*rc::gen::inRange<std::size_t>(0, dealt.size())];
  Ranges left = ranges;
  RC_ASSERT(Take(left, part).ok());
  RC_ASSERT(IsTidy(left));
  RC_ASSERT(SizeOf(left) + SizeOf(part) == SizeOf(ranges));
  RC_ASSERT(Join(left, part) == ranges);
  const Ranges before = left;
  RC_ASSERT((part.empty() || absl::IsFailedPrecondition(Take(left, part))));
  RC_ASSERT(left == before);
}

RC_GTEST_PROP(DealProperties, TakeIsTheDifferenceOfSetsOrRefused, ()) {
  const Ranges from = AnyRanges();
  const Ranges taken = AnyRanges();
  Ranges left = from;
  const absl::Status status = Take(left, taken);
  std::set<std::int64_t> records = RecordsOf(from);
  const std::set<std::int64_t> removed = RecordsOf(taken);
  RC_ASSERT(status.ok() == std::ranges::includes(records, removed));
  if (status.ok()) {
    for (const std::int64_t record : removed) records.erase(record);
  }
  RC_ASSERT(RecordsOf(left) == records);
  RC_ASSERT(IsTidy(left));
}

RC_GTEST_PROP(DealProperties, FrontIsTheBeginning, ()) {
  const Ranges ranges = AnyRanges();
  const std::int64_t count = *rc::gen::inRange(0, 200);
  const Ranges front = Front(ranges, count);
  RC_ASSERT(IsTidy(front));
  RC_ASSERT(SizeOf(front) == std::min(count, SizeOf(ranges)));
  Ranges rest = ranges;
  RC_ASSERT(Take(rest, front).ok());
  RC_ASSERT((front.empty() || rest.empty() || front.back().end <= rest.front().begin));
}

}  // namespace
}  // namespace trainyard::ps
