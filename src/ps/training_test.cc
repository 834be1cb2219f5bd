// Trainers and pservers together: what they learn is what one process learns, whoever is restarted meanwhile.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/kernel/random.h"
#include "ps/job_testing.h"

namespace trainyard::ps {
namespace {

using graph::Builder;
using graph::Dims;
using graph::Programs;
using graph::Ref;
using graph::Tensor;

constexpr int kFeatures = 6;
constexpr std::int64_t kRecords = 400;

// Lines of kFeatures numbers and what they add up to by fixed weights.
std::vector<std::vector<float>> MakeRecords() {
  std::vector<std::vector<float>> records;
  for (std::int64_t i = 0; i < kRecords; ++i) {
    std::vector<float> record;
    float sum = 0.5F;
    for (int k = 0; k < kFeatures; ++k) {
      const auto x =
          static_cast<float>(graph::UniformAt(7, 0, static_cast<std::uint64_t>(i * kFeatures + k)) - 0.5);
      record.push_back(x);
      sum += x * static_cast<float>(k - 2);
    }
    record.push_back(sum);
    records.push_back(record);
  }
  return records;
}

std::string WriteCsv(const Folder& folder) {
  const std::string path = folder.At("data.csv");
  std::ofstream out(path);
  for (const std::vector<float>& record : MakeRecords()) {
    for (std::size_t i = 0; i < record.size(); ++i)
      out << (i == 0 ? "" : ",") << graph::PrintNumber(record[i]);
    out << "\n";
  }
  return path;
}

// Two layers, so that parameters are cut and begin at random.
Programs Net(const std::string& file, std::int64_t batch, const graph::Optimizer& optimizer) {
  Builder net("net", {.seed = 9});
  const std::vector<Ref> fields = net.Read({.sources = {file},
                                            .format = "csv",
                                            .batch_size = batch,
                                            .fields = {{.name = "x", .item = {kFeatures}, .begin = 0},
                                                       {.name = "y", .item = {1}, .begin = kFeatures}}});
  const Ref hidden = net.Fc(fields[0], 16, {.activation = "tanh"});
  const Ref loss = net.Mean(net.SquareErrorCost(net.Fc(hidden, 1), fields[1]));
  net.Output({loss});
  net.Minimize(loss, optimizer);
  absl::StatusOr<Programs> programs = net.Finish();
  TY_CHECK(programs.ok(), programs.status().ToString());
  return *std::move(programs);
}

// One process, fed what the trainers of one step read together.
void TrainHere(const Programs& programs, int trainers, std::int64_t batch, std::int64_t passes,
               graph::Scope& scope) {
  graph::Program main = programs.main;
  std::erase_if(main.main().ops, [](const graph::Op& op) { return op.type == "read"; });
  graph::Services services;
  ASSERT_TRUE(graph::RunOnce(programs.startup, scope, services).ok());
  auto block = graph::PreparedBlock::Make(main, 0, scope);
  ASSERT_TRUE(block.ok()) << block.status();
  const std::vector<std::vector<float>> records = MakeRecords();
  const std::int64_t share = kRecords / trainers;
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    for (std::int64_t at = 0; at < share; at += batch) {
      Tensor x(graph::DataType::kFloat32, {trainers * batch, kFeatures});
      Tensor y(graph::DataType::kFloat32, {trainers * batch, 1});
      for (int t = 0; t < trainers; ++t) {
        for (std::int64_t i = 0; i < batch; ++i) {
          const std::vector<float>& record = records[static_cast<std::size_t>(t * share + at + i)];
          const std::int64_t row = t * batch + i;
          std::copy(record.begin(), record.end() - 1, x.data<float>() + row * kFeatures);
          y.data<float>()[row] = record.back();
        }
      }
      ASSERT_TRUE((*block)->Feed("x", x).ok());
      ASSERT_TRUE((*block)->Feed("y", y).ok());
      const absl::Status run = (*block)->Run(services);
      ASSERT_TRUE(run.ok()) << run;
    }
  }
}

// Every piece that the pservers have is the part of the whole that it should be.
void ExpectSame(TestJob& job, const graph::Scope& scope, double tolerance) {
  const std::map<std::string, Tensor> pieces = job.Variables();
  int compared = 0;
  for (const graph::Graph& pserver : job.graphs().pservers) {
    for (const graph::Var& var : pserver.main.main().vars) {
      if (!var.persistable || var.name == graph::kShare) continue;
      const std::string whole_name = var.slice ? var.slice->of : var.name.substr(0, var.name.find(".block"));
      const Tensor* whole = scope.FindTensor(whole_name);
      ASSERT_NE(whole, nullptr) << whole_name;
      if (whole->type() != graph::DataType::kFloat32) continue;
      const auto piece = pieces.find(var.name);
      ASSERT_NE(piece, pieces.end()) << var.name;
      const std::int64_t offset = var.slice ? var.slice->offset : 0;
      for (std::int64_t i = 0; i < piece->second.count(); ++i) {
        ASSERT_NEAR(piece->second.data<float>()[i], whole->data<float>()[offset + i], tolerance)
            << var.name << " element " << i;
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 4);
}

const graph::Optimizer kAdam{.update = graph::Adam(), .rate = 0.01};

TEST(Training, OfTwoByTwoEndsAsOneProcessDoes) {
  const Folder folder;
  const Programs programs = Net(WriteCsv(folder), 10, kAdam);
  TestJob job(programs, {.trainers = 2, .passes = 3, .pservers = 2, .min_block_elements = 8});
  job.StartAll();
  job.Finish();
  graph::Scope scope;
  TrainHere(programs, 2, 10, 3, scope);
  EXPECT_EQ(job.Meta().state, JobState::kComplete);
  EXPECT_EQ(job.Meta().steps, 60);
  ExpectSame(job, scope, 1e-6);
  for (std::int64_t pass = 0; pass < 3; ++pass) EXPECT_EQ(job.Account().Used(pass), kRecords);
}

TEST(Training, GoesBackAndRepeatsExactlyWhenAPserverIsRestarted) {
  const Folder folder;
  const Programs programs =
      Net(WriteCsv(folder), 10,
          {.update = graph::Momentum(), .rate = graph::ExponentialDecay{.base = 0.05, .decay_steps = 20}});
  TestJob job(programs, {.trainers = 2, .passes = 20, .pservers = 2, .min_block_elements = 8});
  job.StartAll();
  job.WaitForStep(25);
  job.StopPserver(1);
  job.StartPserver(1);
  job.WaitForStep(60);
  job.StopPserver(0);
  job.StartPserver(0);
  job.Finish();
  EXPECT_GE(job.Meta().generation, 3);
  EXPECT_EQ(job.Meta().steps, 400);
  graph::Scope scope;
  TrainHere(programs, 2, 10, 20, scope);
  ExpectSame(job, scope, 1e-5);
  for (std::int64_t pass = 0; pass < 20; ++pass) EXPECT_EQ(job.Account().Used(pass), kRecords);
}

TEST(Training, UsesEveryRecordOnceThoughTrainersComeAndGo) {
  const Folder folder;
  const Programs programs = Net(WriteCsv(folder), 4, kAdam);
  TestJob job(programs, {.trainers = 3, .passes = 5, .pservers = 2, .min_block_elements = 8});
  job.StartAll();
  for (int i = 0; i < 6; ++i) {
    job.WaitForStep(10 + 10 * i);
    job.StopTrainer(i % 3);
    job.StartTrainer(i % 3);
  }
  job.Finish();
  for (std::int64_t pass = 0; pass < 5; ++pass) EXPECT_EQ(job.Account().Used(pass), kRecords);
}

TEST(Training, WithoutStepsConverges) {
  const Folder folder;
  const Programs programs = Net(WriteCsv(folder), 10, {.update = graph::Sgd(), .rate = 0.05});
  TestJob job(
      programs,
      {.trainers = 2, .passes = 30, .pservers = 2, .mode = graph::SyncMode::kAsync, .min_block_elements = 8});
  job.StartAll();
  job.Finish();
  const auto outputs = job.store().Range({.range = kv::KeyRange::Prefix(job.keys().Outputs("trainer-0"))});
  ASSERT_TRUE(outputs.ok());
  ASSERT_GT(outputs->kvs.size(), 100);
  const double first = DecodeOutput(outputs->kvs.front().value)->values[0].values[0];
  const double last = DecodeOutput(outputs->kvs.back().value)->values[0].values[0];
  EXPECT_LT(last, first / 10);
  for (std::int64_t pass = 0; pass < 30; ++pass) EXPECT_EQ(job.Account().Used(pass), kRecords);
}

}  // namespace
}  // namespace trainyard::ps
