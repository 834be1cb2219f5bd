#include "ps/inbox.h"

#include <gtest/gtest.h>

#include "ps/rpc/tensor_parts.h"

namespace trainyard::ps {
namespace {

// A gradient of two parts, as attempts of one trainer send it.
class InboxTest : public testing::Test {
 protected:
  static constexpr std::int64_t kElements = 2 * kFrameBytes / 4;

  absl::StatusOr<Inbox::Verdict> Expect(int number, std::int64_t attempt, std::int64_t elements = kElements) {
    Describe(number, attempt, elements);
    return inbox_.Expect(Part(), type_, value_);
  }
  void Arrive(int number, std::int64_t attempt, bool copied = true) {
    Describe(number, attempt, kElements);
    inbox_.Arrived(Part(), copied);
    inbox_.Release();
  }
  const void* data() const { return std::get<graph::Tensor>(value_).data<float>(); }

  graph::VarType type_{.data_type = graph::DataType::kFloat32, .dims = {-1}};
  Inbox inbox_;

 private:
  void Describe(int number, std::int64_t attempt, std::int64_t elements) {
    caller_.set_sender("trainer-0");
    caller_.set_attempt(attempt);
    part_.set_name("w@grad");
    *part_.mutable_tensor() = HeadOf(graph::Tensor(graph::DataType::kFloat32, {elements}));
    part_.set_offset(number * kFrameBytes);
    part_.set_length(kFrameBytes);
  }
  GradientPart Part() { return {.caller = caller_, .step = 1, .part = part_, .message = message_}; }

  graph::Value value_;
  wire::Caller caller_;
  wire::Part part_;
  Unpacked message_;
};

TEST_F(InboxTest, ALaterAttemptWaitsUntilWhatIsThereIsNoLongerInUse) {
  ASSERT_EQ(*Expect(0, 1), Inbox::Verdict::kWanted);
  ASSERT_EQ(*Expect(1, 1), Inbox::Verdict::kWanted);
  const void* const before = data();
  // It is larger, so that it needs other memory than the one that two parts are being copied to.
  EXPECT_TRUE(absl::IsUnavailable(Expect(0, 2, 2 * kElements).status()));
  Arrive(0, 1);
  EXPECT_TRUE(absl::IsUnavailable(Expect(0, 2, 2 * kElements).status()));
  EXPECT_EQ(data(), before);
  Arrive(1, 1);
  EXPECT_TRUE(inbox_.Whole(1));
  EXPECT_EQ(*Expect(0, 2, 2 * kElements), Inbox::Verdict::kWanted);
  EXPECT_FALSE(inbox_.Whole(1));
  EXPECT_TRUE(absl::IsAborted(Expect(0, 1).status()));
}

TEST_F(InboxTest, OnePartIsCopiedOnceAtATime) {
  ASSERT_EQ(*Expect(0, 1), Inbox::Verdict::kWanted);
  EXPECT_TRUE(absl::IsUnavailable(Expect(0, 1).status()));
  Arrive(0, 1, /*copied=*/false);
  ASSERT_EQ(*Expect(0, 1), Inbox::Verdict::kWanted);
  Arrive(0, 1);
  EXPECT_EQ(*Expect(0, 1), Inbox::Verdict::kRepeat);
  EXPECT_FALSE(inbox_.Whole(1));
  ASSERT_EQ(*Expect(1, 1), Inbox::Verdict::kWanted);
  Arrive(1, 1);
  EXPECT_TRUE(inbox_.Whole(1));
}

}  // namespace
}  // namespace trainyard::ps
