#include <cmath>
#include <filesystem>
#include <limits>

#include "base/files.h"
#include "graph/kernel/kernel_testing.h"
#include "graph/kernel/tensor_file.h"
#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

OpCall ControlOfX(std::string type, Value x, Attrs attrs = {}) {
  return {.type = std::move(type), .in = {{"X", {std::move(x)}}}, .attrs = std::move(attrs)};
}

OpCall OfXAndY(std::string type, Tensor x, Tensor y) {
  return {.type = std::move(type), .in = {{"X", {std::move(x)}}, {"Y", {std::move(y)}}}};
}

bool Truth(const OpCall& call) { return Output(call).data<bool>()[0]; }

TEST(Increment, AddsItsStep) {
  ExpectNear(Output(ControlOfX("increment", F32({1}, {1.5F}), {{"step", 0.25}})), {1.75F}, 0);
  OpCall call = ControlOfX("increment", I64({1}, {41}));
  EXPECT_EQ(Output(call).data<std::int64_t>()[0], 42);
  call.in_place = {{"Out", "X"}};
  EXPECT_EQ(Output(call).data<std::int64_t>()[0], 42);
}

TEST(Increment, RefusesWhatAWholeNumberCannotBe) {
  EXPECT_TRUE(
      absl::IsInvalidArgument(RunOp(ControlOfX("increment", I64({1}, {1}), {{"step", 0.5}})).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(RunOp(ControlOfX("increment", I64({1}, {1}), {{"step", 1e30}})).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(RunOp(ControlOfX("increment", I64({1}, {kLargest}))).status()));
}

TEST(LessThan, ComparesNumbersAndTruths) {
  EXPECT_TRUE(Truth(OfXAndY("less_than", F32({1}, {1}), F32({1}, {1.5F}))));
  EXPECT_FALSE(Truth(OfXAndY("less_than", I64({1}, {2}), I64({1}, {2}))));
  EXPECT_TRUE(Truth(OfXAndY("less_than", I64({1}, {-3}), I64({1}, {2}))));
  EXPECT_TRUE(Truth(OfXAndY("less_than", Bool(false), Bool(true))));
}

TEST(Logic, KnowsNotAndAnd) {
  for (const bool a : {false, true}) {
    EXPECT_EQ(Truth(ControlOfX("logical_not", Bool(a))), !a);
    for (const bool b : {false, true}) EXPECT_EQ(Truth(OfXAndY("logical_and", Bool(a), Bool(b))), a && b);
  }
}

TEST(PrintKernel, TakesEveryKindOfValue) {
  const std::vector<Value> values = {RandomTensor({100}, 1), I64({2}, {1, 2}), Bool(true), F32({0}, {}),
                                     Sparse(9, {1}, F32({1, 2}, {1, 2}))};
  for (const Value& value : values)
    EXPECT_TRUE(RunOp(ControlOfX("print", value, {{"message", std::string("it is")}})).ok());
}

// Counts up; a pass has two batches.
class Counting final : public BatchSource {
 public:
  absl::Status Next(absl::Span<Tensor* const> fields) override {
    if (++batches_ % 3 == 0) return absl::OutOfRangeError("the pass has ended");
    fields[0]->Resize(DataType::kFloat32, {batches_, 2});
    fields[1]->Resize(DataType::kInt64, {batches_, 1});
    std::fill_n(fields[1]->data<std::int64_t>(), batches_, batches_);
    return absl::OkStatus();
  }
  std::int64_t pass() const override { return batches_ / 3; }

 private:
  std::int64_t batches_ = 0;
};

OpCall ReadCall() {
  return {.type = "read",
          .attrs = {{"sources", Strings{"a"}},
                    {"batch_size", std::int64_t{1}},
                    {"shapes", Strings{"2", "1"}},
                    {"types", Strings{"f32", "i64"}}},
          .outs = {{"Out", 2}}};
}

TEST(Read, TakesBatchesUntilThePassEnds) {
  const auto op = OneOp::Make(ReadCall());
  ASSERT_TRUE(op.ok()) << op.status();
  Counting source;
  (*op)->services.batches = &source;
  for (const std::int64_t rows : {1, 2}) {
    ASSERT_TRUE((*op)->Run().ok());
    EXPECT_EQ(std::get<Tensor>((*op)->Get("Out")).dims(), (Dims{rows, 2}));
    EXPECT_EQ(std::get<Tensor>((*op)->Get("Out.1")).data<std::int64_t>()[0], rows);
  }
  EXPECT_TRUE(absl::IsOutOfRange((*op)->Run()));
}

TEST(Read, SaysThatItHasNoData) { EXPECT_TRUE(absl::IsFailedPrecondition(RunOp(ReadCall()).status())); }

class Collecting final : public OutputSink {
 public:
  absl::Status Append(const std::vector<std::pair<std::string, const Tensor*>>& values) override {
    for (const auto& [name, tensor] : values)
      StrAppend(text, name, "=", PrintNumber(tensor->data<float>()[0]), " ");
    return absl::OkStatus();
  }
  std::string text;
};

TEST(OutputKernel, AppendsEverySoManySteps) {
  const OpCall call = {
      .type = "output", .in = {{"X", {F32({1}, {1}), F32({1}, {2})}}}, .attrs = {{"every", std::int64_t{3}}}};
  Collecting sink;
  for (std::int64_t step = 0; step < 7; ++step) {
    ASSERT_TRUE(RunOp(call, {.outputs = &sink, .step = step}).ok());
    StrAppend(sink.text, "| ");
  }
  EXPECT_EQ(sink.text, "X=1 X.1=2 | | | X=1 X.1=2 | | | X=1 X.1=2 | ");
}

TEST(OutputKernel, DoesNothingWithoutASinkAndRefusesSparseValues) {
  EXPECT_TRUE(RunOp(ControlOfX("output", F32({1}, {1}))).ok());
  Collecting sink;
  const OpCall sparse = ControlOfX("output", Sparse(9, {1}, F32({1, 1}, {1})));
  EXPECT_TRUE(absl::IsInvalidArgument(RunOp(sparse, {.outputs = &sink}).status()));
  EXPECT_TRUE(
      RunOp(ControlOfX("output", F32({1}, {1}), {{"every", std::int64_t{0}}}), {.outputs = &sink}).ok());
}

class SaveAndLoad : public testing::Test {
 protected:
  SaveAndLoad() {
    std::string pattern = testing::TempDir() + "/tensors.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~SaveAndLoad() override { std::filesystem::remove_all(folder_); }

  std::string File() const { return folder_ + "/w"; }
  OpCall Save(Value x) const { return ControlOfX("save", std::move(x), {{"file", File()}}); }
  OpCall Load(Ints shape, std::string dtype = "f32") const {
    return {.type = "load",
            .attrs = {{"file", File()}, {"shape", std::move(shape)}, {"dtype", std::move(dtype)}}};
  }

 private:
  std::string folder_;
};

TEST_F(SaveAndLoad, KeepTensors) {
  const Tensor x = RandomTensor({3, 5}, 1);
  ASSERT_TRUE(RunOp(Save(x)).ok());
  EXPECT_EQ(ValuesOf<float>(Output(Load({3, 5}))), ValuesOf<float>(x));
  EXPECT_EQ(ValuesOf<float>(Output(Load({-1, 5}))), ValuesOf<float>(x));
  ASSERT_TRUE(RunOp(Save(I64({2}, {7, 8}))).ok());
  EXPECT_EQ(ValuesOf<std::int64_t>(Output(Load({2}, "i64"))), (std::vector<std::int64_t>{7, 8}));
}

TEST_F(SaveAndLoad, RefuseAnotherShapeOrType) {
  ASSERT_TRUE(RunOp(Save(RandomTensor({3, 5}, 1))).ok());
  for (const OpCall& call :
       {Load({5, 3}), Load({15}), Load({3, 4}), Load({4, 5}), Load({3, 5}, "i64"), Load({-1, 3})}) {
    const absl::Status status = RunOp(call).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(Message(status).find(File()), std::string_view::npos) << status;
  }
}

TEST_F(SaveAndLoad, NameAFileThatIsMissingOrBroken) {
  EXPECT_TRUE(absl::IsNotFound(RunOp(Load({1})).status()));
  std::string bytes = EncodeTensor(F32({1}, {1}));
  bytes.back() ^= 1;
  ASSERT_TRUE(ReplaceFile(File(), bytes, 0644, Durability::kProcess).ok());
  const absl::Status status = RunOp(Load({1})).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(Message(status).find(File()), std::string_view::npos) << status;
}

TEST_F(SaveAndLoad, RefuseSparseValues) {
  EXPECT_TRUE(absl::IsInvalidArgument(RunOp(Save(Sparse(9, {1}, F32({1, 1}, {1})))).status()));
}

}  // namespace
}  // namespace trainyard::graph
