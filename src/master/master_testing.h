// Whole elastic jobs in one process: a master, and workers in threads of their own.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "kv/memory_store.h"
#include "master/checkpoints.h"
#include "master/master.h"
#include "master/pserver/pserver.h"
#include "master/spec.h"
#include "master/worker/program_worker.h"
#include "ps/training_testing.h"

namespace trainyard::master {

// A worker or a pserver that runs until the job is over, or until it is stopped.
template <typename Options,
          absl::Status (*Run)(const Options& options,
                              const std::function<void(std::function<void()> stop)>& on_running)>
class JobThread {
 public:
  explicit JobThread(Options options)
      : result_(std::async(std::launch::async, [this, options = std::move(options)] {
          return Run(options, [this](std::function<void()> stop) {
            const MutexLock lock(mu_);
            stop_ = std::move(stop);
            if (asked_) stop_();
          });
        })) {}
  ~JobThread() {
    if (result_.valid()) {
      Stop();
      result_.wait();
    }
  }

  void Stop() {
    const MutexLock lock(mu_);
    asked_ = true;
    if (stop_) stop_();
  }
  absl::Status Join() { return result_.get(); }

 private:
  Mutex mu_;
  std::function<void()> stop_ TY_GUARDED_BY(mu_);
  bool asked_ TY_GUARDED_BY(mu_) = false;
  std::future<absl::Status> result_;
};
using WorkerThread = JobThread<WorkerOptions, RunProgramWorker>;
using PserverThread = JobThread<PserverOptions, RunPserver>;

class TestElasticJob {
 public:
  explicit TestElasticJob(JobSpec spec, const graph::Optimizer& optimizer = ps::kAdam,
                          std::int64_t hidden_units = 16)
      : file_(ps::WriteCsv(folder_)),
        programs_(ps::Net(file_, 20, optimizer, hidden_units)),
        spec_(std::move(spec)) {
    spec_.name = "test";
    spec_.id = "1";
    spec_.program = EncodeBase64(EncodePrograms(programs_));
    spec_.training_data = {file_};
    spec_.data_format = "csv";
    spec_.max_workers = 8;
    spec_.checkpoint_dir = folder_.At("checkpoints");
  }

  JobSpec& spec() { return spec_; }
  const graph::Programs& programs() const { return programs_; }
  const std::string& file() const { return file_; }
  std::string At(const std::string& name) const { return folder_.At(name); }
  Master& master() { return *master_; }
  kv::Store& store() { return *store_; }

  // Where it was before, if it was.
  void Start(std::optional<LastEnd> last_end = std::nullopt) {
    auto master = Master::Start(
        *store_, {.spec = spec_, .listen = listen_, .token = "secret", .last_end = std::move(last_end)});
    ASSERT_TRUE(master.ok()) << master.status();
    master_ = *std::move(master);
    listen_ = Address();
  }
  std::string Address() const { return "127.0.0.1:" + std::to_string(master_->port()); }
  // As if its process were killed: nothing more is written.
  void Kill() { master_.reset(); }

  WorkerOptions Worker(int index) const {
    return {.master = Address(), .token = "secret", .index = index, .pod = "worker-" + std::to_string(index)};
  }
  PserverOptions Pserver(int index) const {
    return {
        .master = Address(), .token = "secret", .index = index, .pod = "pserver-" + std::to_string(index)};
  }

  std::map<std::string, graph::Tensor> Learnt() const {
    auto checkpoint = ReadNewestCheckpoint(spec_.checkpoint_dir, spec_.id);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return checkpoint.ok() ? checkpoint->variables : std::map<std::string, graph::Tensor>();
  }

 private:
  ps::Folder folder_;
  std::string file_;
  graph::Programs programs_;
  JobSpec spec_;
  std::unique_ptr<kv::Store> store_ = kv::NewMemoryStore(Clock::System());
  std::string listen_ = "127.0.0.1:0";
  std::unique_ptr<Master> master_;
};

inline void ExpectVariables(const std::map<std::string, graph::Tensor>& learnt, const graph::Scope& scope,
                            double tolerance) {
  ASSERT_FALSE(learnt.empty());
  for (const auto& [name, tensor] : learnt) {
    const graph::Tensor* const expected = scope.FindTensor(name);
    ASSERT_NE(expected, nullptr) << name;
    if (tensor.type() != graph::DataType::kFloat32) continue;
    ASSERT_EQ(tensor.count(), expected->count()) << name;
    for (std::int64_t i = 0; i < tensor.count(); ++i)
      ASSERT_NEAR(tensor.data<float>()[i], expected->data<float>()[i], tolerance) << name << " element " << i;
  }
}

}  // namespace trainyard::master
