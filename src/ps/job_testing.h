// A whole graph job in one process, for tests: a store, pservers and trainers that speak over loopback.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "graph/build/builder.h"
#include "graph/exec/executor.h"
#include "graph/pass/transpile.h"
#include "kv/local_store.h"
#include "kv/memory_store.h"
#include "ps/checkpoint.h"
#include "ps/job.h"
#include "ps/lead.h"
#include "ps/origin.h"
#include "ps/pserver.h"
#include "ps/tables.h"
#include "ps/trainer.h"

namespace trainyard::ps {

// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "trainyard-ps-XXXXXX").string();
    TY_CHECK(::mkdtemp(name.data()) != nullptr, "a folder can be made");
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string At(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

class TestJob {
 public:
  // `settings` without graphs.
  TestJob(const graph::Programs& programs, graph::TranspileOptions options,
          NewJob settings = {.checkpoint_every = 10})
      : options_(options) {
    absl::StatusOr<graph::Graphs> graphs = graph::Transpile(programs, options);
    TY_CHECK(graphs.ok(), graphs.status().ToString());
    settings.graphs = *std::move(graphs);
    const absl::Status created = CreateJob(store_, ids_, keys_, settings);
    TY_CHECK(created.ok(), created.ToString());
  }

  ~TestJob() {
    for (auto& trainer : trainers_) {
      if (trainer) End(*trainer);
    }
    pservers_.clear();
  }

  void StartPserver(int i) {
    absl::StatusOr<std::unique_ptr<Pserver>> pserver =
        Pserver::Start(store_, {.keys = keys_,
                                .graph = graph::GraphId(graph::GraphRole::kPserver, i),
                                .pod_name = StrCat("p", i),
                                .token = "secret",
                                .checkpoint_directory = folder_.path()});
    ASSERT_TRUE(pserver.ok()) << pserver.status();
    At(pservers_, i) = *std::move(pserver);
  }
  void StopPserver(int i) { At(pservers_, i).reset(); }
  Pserver& pserver(int i) { return *At(pservers_, i); }

  void StartTrainer(int i) {
    auto running = std::make_unique<Running>();
    absl::StatusOr<std::unique_ptr<Trainer>> trainer =
        Trainer::Start(store_, {.keys = keys_,
                                .graph = graph::GraphId(graph::GraphRole::kTrainer, i),
                                .pod_name = StrCat("t", i),
                                .token = "secret"});
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    running->trainer = *std::move(trainer);
    running->thread = std::thread([run = running.get()] { run->result = run->trainer->Run(); });
    At(trainers_, i) = std::move(running);
  }
  void StopTrainer(int i) {
    End(*At(trainers_, i));
    At(trainers_, i).reset();
  }

  void StartAll() {
    for (int i = 0; i < options_.pservers; ++i) StartPserver(i);
    for (int i = 0; i < options_.trainers; ++i) StartTrainer(i);
  }

  // Waits for the own end of all that run.
  void Finish() {
    for (int i = 0; i < static_cast<int>(trainers_.size()); ++i) AwaitTrainer(i);
    for (int i = 0; i < static_cast<int>(pservers_.size()); ++i) AwaitPserver(i);
    trainers_.clear();
  }
  void AwaitTrainer(int i) {
    auto& running = At(trainers_, i);
    if (!running) return;
    running->thread.join();
    EXPECT_TRUE(running->result.ok()) << running->result;
    running.reset();
  }
  void AwaitPserver(int i) {
    if (!At(pservers_, i)) return;
    const absl::Status ended = pserver(i).Wait();
    EXPECT_TRUE(ended.ok()) << ended;
    StopPserver(i);
  }

  // Waits until pserver-0 has applied that many steps.
  void WaitForStep(std::int64_t step) {
    while (pserver(0).step() < step) std::this_thread::yield();
  }

  JobMeta Meta() { return GetMeta(store_, keys_)->meta; }

  // The variables of the last checkpoint of every pserver.
  std::map<std::string, graph::Tensor> Variables() {
    std::map<std::string, graph::Tensor> all;
    for (const CheckpointData& data : Last()) all.insert(data.variables.begin(), data.variables.end());
    return all;
  }
  Lead Account() {
    absl::StatusOr<LeadState> state = Lead::Load(Last()[0].extra);
    TY_CHECK(state.ok(), state.status().ToString());
    return Lead(*std::move(state));
  }
  // As the job is cut now.
  std::vector<graph::Graph> PserverGraphs() {
    const JobMeta meta = Meta();
    std::vector<graph::Graph> graphs;
    for (int i = 0; i < meta.pservers; ++i)
      graphs.push_back(*TakeGraph(store_, keys_, meta, graph::GraphId(graph::GraphRole::kPserver, i)));
    return graphs;
  }
  // What a trainer put out, one value for each step that it did.
  std::vector<double> Losses(const std::string& trainer) {
    const auto outputs = store_.Range({.range = kv::KeyRange::Prefix(keys_.Outputs(trainer))});
    TY_CHECK(outputs.ok(), outputs.status().ToString());
    std::vector<double> losses;
    for (const kv::KeyValue& kv : outputs->kvs) losses.push_back(DecodeOutput(kv.value)->values[0].values[0]);
    return losses;
  }

  kv::Store& store() { return store_; }
  IdSource& ids() { return ids_; }
  const JobKeys& keys() const { return keys_; }
  const Folder& folder() const { return folder_; }

 private:
  struct Running {
    std::unique_ptr<Trainer> trainer;
    std::thread thread;
    absl::Status result;
  };
  template <typename T>
  static std::unique_ptr<T>& At(std::vector<std::unique_ptr<T>>& all, int i) {
    if (all.size() <= static_cast<std::size_t>(i)) all.resize(static_cast<std::size_t>(i) + 1);
    return all[static_cast<std::size_t>(i)];
  }
  static void End(Running& running) {
    running.trainer->Stop();
    if (running.thread.joinable()) running.thread.join();
  }
  std::vector<CheckpointData> Last() {
    std::vector<std::string> names;
    for (int i = 0; i < Meta().pservers; ++i) names.push_back(graph::GraphId(graph::GraphRole::kPserver, i));
    std::vector<CheckpointData> all;
    const auto pointers = GetCheckpoints(store_, keys_, names);
    TY_CHECK(pointers.ok(), pointers.status().ToString());
    for (const GraphCheckpoints& pointer : *pointers) {
      absl::StatusOr<CheckpointData> data = ReadCheckpoint(pointer.kept.back());
      TY_CHECK(data.ok(), data.status().ToString());
      all.push_back(*std::move(data));
    }
    return all;
  }

  Folder folder_;
  const std::unique_ptr<kv::Store> owned_ = kv::NewMemoryStore(Clock::System());
  kv::Store& store_ = *owned_;
  IdSource ids_{1};
  const JobKeys keys_{"default/test"};
  const graph::TranspileOptions options_;
  std::vector<std::unique_ptr<Pserver>> pservers_;
  std::vector<std::unique_ptr<Running>> trainers_;
};

}  // namespace trainyard::ps
