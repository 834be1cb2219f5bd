// A small network and its data, for tests of whole jobs: what is learnt is compared with one process.
#pragma once

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graph/build/builder.h"
#include "graph/exec/executor.h"
#include "graph/kernel/random.h"
#include "ps/job_testing.h"

namespace trainyard::ps {

inline constexpr int kFeatures = 6;
inline constexpr std::int64_t kRecords = 400;

using Records = std::vector<std::vector<float>>;

// Lines of kFeatures numbers and what they add up to by fixed weights.
inline Records MakeRecords() {
  Records records;
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

inline std::string WriteCsv(const Folder& folder, const Records& records = MakeRecords()) {
  const std::string path = folder.At("data.csv");
  std::ofstream out(path);
  for (const std::vector<float>& record : records) {
    for (std::size_t i = 0; i < record.size(); ++i)
      out << (i == 0 ? "" : ",") << graph::PrintNumber(record[i]);
    out << "\n";
  }
  return path;
}

// Two layers, so that parameters are cut and begin at random.
inline graph::Programs Net(const std::string& file, std::int64_t batch, const graph::Optimizer& optimizer,
                           std::int64_t hidden_units = 16) {
  graph::Builder net("net", {.seed = 9});
  const std::vector<graph::Ref> fields =
      net.Read({.sources = {file},
                .format = "csv",
                .batch_size = batch,
                .fields = {{.name = "x", .item = {kFeatures}, .begin = 0},
                           {.name = "y", .item = {1}, .begin = kFeatures}}});
  const graph::Ref hidden = net.Fc(fields[0], hidden_units, {.activation = "tanh"});
  const graph::Ref loss = net.Mean(net.SquareErrorCost(net.Fc(hidden, 1), fields[1]));
  net.Output({loss});
  net.Minimize(loss, optimizer);
  absl::StatusOr<graph::Programs> programs = net.Finish();
  TY_CHECK(programs.ok(), programs.status().ToString());
  return *std::move(programs);
}

// The program in this process, fed by the test.
class LocalRun {
 public:
  LocalRun(const graph::Programs& programs, graph::Scope& scope) {
    graph::Program main = programs.main;
    std::erase_if(main.main().ops, [](const graph::Op& op) { return op.type == "read"; });
    TY_CHECK(graph::RunOnce(programs.startup, scope, services_).ok(), "it starts");
    auto block = graph::PreparedBlock::Make(main, 0, scope);
    TY_CHECK(block.ok(), block.status().ToString());
    block_ = *std::move(block);
  }

  void Step(const Records& batch) {
    const auto rows = static_cast<std::int64_t>(batch.size());
    graph::Tensor x(graph::DataType::kFloat32, {rows, kFeatures});
    graph::Tensor y(graph::DataType::kFloat32, {rows, 1});
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::vector<float>& record = batch[static_cast<std::size_t>(row)];
      std::copy(record.begin(), record.end() - 1, x.data<float>() + row * kFeatures);
      y.data<float>()[row] = record.back();
    }
    ASSERT_TRUE(block_->Feed("x", x).ok());
    ASSERT_TRUE(block_->Feed("y", y).ok());
    const absl::Status run = block_->Run(services_);
    ASSERT_TRUE(run.ok()) << run;
  }

 private:
  graph::Services services_;
  std::unique_ptr<graph::PreparedBlock> block_;
};

// One process, fed what the trainers of one step read together.
inline void TrainHere(const graph::Programs& programs, int trainers, std::int64_t batch, std::int64_t passes,
                      graph::Scope& scope) {
  LocalRun run(programs, scope);
  const Records records = MakeRecords();
  const std::int64_t share = kRecords / trainers;
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    for (std::int64_t at = 0; at < share; at += batch) {
      Records together;
      for (int t = 0; t < trainers; ++t) {
        const auto first = records.begin() + t * share + at;
        together.insert(together.end(), first, first + batch);
      }
      run.Step(together);
    }
  }
}

// Every piece that the pservers have is the part of the whole that it should be.
inline void ExpectSame(TestJob& job, const graph::Scope& scope, double tolerance) {
  const std::map<std::string, graph::Tensor> pieces = job.Variables();
  int compared = 0;
  for (const graph::Graph& pserver : job.PserverGraphs()) {
    for (const graph::Var& var : pserver.main.main().vars) {
      if (!var.persistable || var.name == graph::kShare) continue;
      const std::string whole_name = var.slice ? var.slice->of : var.name.substr(0, var.name.find(".block"));
      const graph::Tensor* whole = scope.FindTensor(whole_name);
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

inline const graph::Optimizer kAdam{.update = graph::Adam(), .rate = 0.01};

}  // namespace trainyard::ps
