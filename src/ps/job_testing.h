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
#include "ps/lead.h"
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
  TestJob(const graph::Programs& programs, graph::TranspileOptions options,
          std::int64_t checkpoint_every = 10)
      : options_(options) {
    absl::StatusOr<graph::Graphs> graphs = graph::Transpile(programs, options);
    TY_CHECK(graphs.ok(), graphs.status().ToString());
    graphs_ = *std::move(graphs);
    IdSource ids(1);
    for (const auto* side : {&graphs_.trainers, &graphs_.pservers}) {
      for (const graph::Graph& graph : *side)
        TY_CHECK(PutGraph(store_, ids, keys_, graph).ok(), "a graph is stored");
    }
    const JobMeta meta{.mode = options.mode,
                       .trainers = options.trainers,
                       .pservers = options.pservers,
                       .layout = "a",
                       .checkpoint_every = checkpoint_every,
                       .passes = options.passes};
    TY_CHECK(PutMeta(store_, keys_, meta, 0).ok(), "the job is stored");
    pservers_.resize(static_cast<std::size_t>(options.pservers));
    trainers_.resize(static_cast<std::size_t>(options.trainers));
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
    pservers_[static_cast<std::size_t>(i)] = *std::move(pserver);
  }
  void StopPserver(int i) { pservers_[static_cast<std::size_t>(i)].reset(); }
  Pserver& pserver(int i) { return *pservers_[static_cast<std::size_t>(i)]; }

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
    trainers_[static_cast<std::size_t>(i)] = std::move(running);
  }
  void StopTrainer(int i) {
    End(*trainers_[static_cast<std::size_t>(i)]);
    trainers_[static_cast<std::size_t>(i)].reset();
  }

  void StartAll() {
    for (int i = 0; i < options_.pservers; ++i) StartPserver(i);
    for (int i = 0; i < options_.trainers; ++i) StartTrainer(i);
  }

  // Waits for the trainers' own end.
  void Finish() {
    for (auto& running : trainers_) {
      running->thread.join();
      EXPECT_TRUE(running->result.ok()) << running->result;
    }
    for (auto& pserver : pservers_) EXPECT_TRUE(pserver->Wait().ok());
    trainers_.clear();
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

  kv::Store& store() { return store_; }
  const JobKeys& keys() const { return keys_; }
  const graph::Graphs& graphs() const { return graphs_; }

 private:
  struct Running {
    std::unique_ptr<Trainer> trainer;
    std::thread thread;
    absl::Status result;
  };
  static void End(Running& running) {
    running.trainer->Stop();
    if (running.thread.joinable()) running.thread.join();
  }
  std::vector<CheckpointData> Last() {
    std::vector<std::string> names;
    for (int i = 0; i < options_.pservers; ++i)
      names.push_back(graph::GraphId(graph::GraphRole::kPserver, i));
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
  const JobKeys keys_{"default/test"};
  const graph::TranspileOptions options_;
  graph::Graphs graphs_;
  std::vector<std::unique_ptr<Pserver>> pservers_;
  std::vector<std::unique_ptr<Running>> trainers_;
};

}  // namespace trainyard::ps
