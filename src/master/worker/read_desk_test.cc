#include "master/worker/read_desk.h"

#include <future>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::master {
namespace {

using testing::ElementsAre;
using Asked = absl::StatusOr<std::shared_ptr<const ReadTicket>>;

std::future<Asked> Ask(ReadDesk& desk, std::vector<std::int64_t> numbers) {
  return std::async(std::launch::async, [&desk, numbers = std::move(numbers)] {
    return desk.Ask(tasks::Kind::kEvaluation, numbers);
  });
}

TEST(ReadDesk, BringsWhatIsAskedForToWhoeverReads) {
  const auto desk = ReadDesk::Open();
  std::future<Asked> asked = Ask(*desk, {7, 3});
  const std::optional<ReadRequest> request = desk->Next();
  ASSERT_TRUE(request);
  EXPECT_EQ(*request, (ReadRequest{.ticket = 1, .kind = tasks::Kind::kEvaluation, .numbers = {7, 3}}));
  desk->Answer(1, absl::OkStatus());
  const Asked ticket = asked.get();
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  EXPECT_EQ(**ticket, 1);
}

TEST(ReadDesk, TellsWhatIsToBeForgottenWhenNobodyHasItAnyMore) {
  const auto desk = ReadDesk::Open();
  std::future<Asked> first = Ask(*desk, {0});
  ASSERT_TRUE(desk->Next());
  desk->Answer(1, absl::OkStatus());
  Asked kept = first.get();
  std::future<Asked> second = Ask(*desk, {1});
  EXPECT_THAT(desk->Next()->forgotten, ElementsAre());
  desk->Answer(2, absl::OkStatus());
  second.get().status().IgnoreError();
  kept->reset();
  std::future<Asked> third = Ask(*desk, {2});
  EXPECT_THAT(desk->Next()->forgotten, ElementsAre(2, 1));
  desk->Answer(3, absl::OkStatus());
  third.get().status().IgnoreError();
}

TEST(ReadDesk, GivesTheReadersErrorAndNoTicket) {
  const auto desk = ReadDesk::Open();
  std::future<Asked> asked = Ask(*desk, {0});
  ASSERT_TRUE(desk->Next());
  desk->Answer(1, absl::InvalidArgumentError("no such table"));
  EXPECT_EQ(asked.get().status(), absl::InvalidArgumentError("no such table"));
}

TEST(ReadDesk, LetsBothGoWhenItIsClosed) {
  const auto desk = ReadDesk::Open();
  std::future<Asked> asked = Ask(*desk, {0});
  ASSERT_TRUE(desk->Next());  // which is never answered
  std::thread reader([&] { EXPECT_EQ(desk->Next(), std::nullopt); });
  desk->Close();
  EXPECT_TRUE(absl::IsCancelled(asked.get().status()));
  reader.join();
  EXPECT_TRUE(absl::IsCancelled(desk->Ask(tasks::Kind::kTraining, {1}).status()));
}

TEST(ReadDesk, IsOutlivedByItsTickets) {
  auto desk = ReadDesk::Open();
  std::future<Asked> asked = Ask(*desk, {0});
  ASSERT_TRUE(desk->Next());
  desk->Answer(1, absl::OkStatus());
  Asked ticket = asked.get();
  desk.reset();
  EXPECT_EQ(**ticket, 1);
  ticket->reset();
}

}  // namespace
}  // namespace trainyard::master
