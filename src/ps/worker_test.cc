// Graphs as pods run them: what ends one, what ends all, and what a job does by itself when pods come and go.
#include "ps/worker.h"

#include <map>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kv/follower.h"
#include "ps/scaling.h"
#include "ps/training_testing.h"

namespace trainyard::ps {
namespace {

using graph::Programs;
using testing::HasSubstr;

// Workers of one job, a thread each.
class Workers {
 public:
  Workers(kv::Store& store, const JobKeys& keys) : store_(store), keys_(keys) {}
  ~Workers() {
    for (auto& [graph, worker] : workers_) {
      if (worker->thread.joinable()) Stop(graph).IgnoreError();
    }
  }

  void Start(const std::string& graph, bool check_finite = false) {
    auto worker = std::make_unique<Worker>();
    worker->thread = std::thread([this, graph, check_finite, it = worker.get()] {
      const WorkerOptions options{.keys = keys_,
                                  .graph = graph,
                                  .pod_name = graph,
                                  .token = "secret",
                                  .checkpoint_directory = folder_.path(),
                                  .check_finite = check_finite};
      it->result = RunWorker(store_, options, [it](std::function<void()> stop) { it->Set(std::move(stop)); });
    });
    workers_[graph] = std::move(worker);
  }
  // How it ended by itself.
  absl::Status Await(const std::string& graph) {
    workers_.at(graph)->thread.join();
    return workers_.at(graph)->result;
  }
  absl::Status Stop(const std::string& graph) {
    workers_.at(graph)->Ask();
    return Await(graph);
  }

 private:
  struct Worker {
    void Set(std::function<void()> how) {
      const MutexLock lock(mu);
      stop = std::move(how);
      if (asked) stop();
    }
    void Ask() {
      const MutexLock lock(mu);
      asked = true;
      if (stop) stop();
    }
    Mutex mu;
    std::function<void()> stop TY_GUARDED_BY(mu);
    bool asked TY_GUARDED_BY(mu) = false;
    absl::Status result;
    std::thread thread;
  };

  const Folder folder_;
  kv::Store& store_;
  const JobKeys keys_;
  std::map<std::string, std::unique_ptr<Worker>> workers_;
};

class WorkerTest : public testing::Test {
 protected:
  void Create(const Programs& programs, const graph::TranspileOptions& options, NewJob settings = {}) {
    settings.graphs = graph::Transpile(programs, options).value();
    settings.checkpoint_every = 10;
    const absl::Status created = CreateJob(*store_, ids_, keys_, settings);
    ASSERT_TRUE(created.ok()) << created;
  }

  JobMeta Meta() { return GetMeta(*store_, keys_)->meta; }

  // Waits until the graph has put out so many values.
  void AwaitOutputs(const std::string& graph, std::size_t count) {
    kv::Follower follower(*store_, kv::KeyRange::Prefix(keys_.Outputs(graph)));
    while (store_->Range({.range = kv::KeyRange::Prefix(keys_.Outputs(graph))})->kvs.size() < count)
      follower.Next(absl::Seconds(1)).status().IgnoreError();
  }

  // The account at the end of the job.
  void ExpectAllUsed(std::int64_t passes) {
    EXPECT_EQ(Meta().state, JobState::kComplete) << Meta().reason;
    const auto pointers = GetCheckpoints(*store_, keys_, {"pserver-0"});
    const auto data = ReadCheckpoint(pointers->at(0).kept.back());
    const Lead account(Lead::Load(data->extra).value());
    for (std::int64_t pass = 0; pass < passes; ++pass) EXPECT_EQ(account.Used(pass), kRecords) << pass;
  }

  const Folder folder_;
  const std::unique_ptr<kv::Store> store_ = kv::NewMemoryStore(Clock::System());
  IdSource ids_{1};
  const JobKeys keys_{"default/test"};
  const Programs programs_ = Net(WriteCsv(folder_), 5, kAdam);
  Workers workers_{*store_, keys_};
};

TEST_F(WorkerTest, GrowsByATrainerThatComesByItself) {
  Create(programs_, {.passes = 10}, {.least_trainers = 1, .most_trainers = 3});
  for (const char* graph : {"pserver-0", "trainer-0"}) workers_.Start(graph);
  AwaitOutputs("trainer-0", 20);
  workers_.Start("trainer-2");
  AwaitOutputs("trainer-2", 1);
  EXPECT_EQ(Meta().trainers, 3);
  workers_.Start("trainer-3");
  EXPECT_TRUE(workers_.Await("trainer-3").ok());  // there is no place for it
  for (const char* graph : {"trainer-0", "trainer-2", "pserver-0"})
    EXPECT_TRUE(workers_.Await(graph).ok()) << graph;
  EXPECT_EQ(Meta().trainers, 3);
  ExpectAllUsed(10);
}

TEST_F(WorkerTest, DoesNotNeedATrainerThatLeavesForEver) {
  Create(programs_, {.trainers = 3, .passes = 3, .pservers = 2});
  for (const char* graph : {"pserver-0", "pserver-1", "trainer-0", "trainer-1", "trainer-2"})
    workers_.Start(graph);
  AwaitOutputs("trainer-1", 10);
  EXPECT_TRUE(absl::IsCancelled(workers_.Stop("trainer-1")));
  for (const char* graph : {"trainer-0", "trainer-2", "pserver-0", "pserver-1"})
    EXPECT_TRUE(workers_.Await(graph).ok()) << graph;
  EXPECT_EQ(Meta().trainers, 3);
  ExpectAllUsed(3);
}

TEST_F(WorkerTest, RousesTrainersThatAreDoneWhenAnotherLeaves) {
  Create(programs_, {.trainers = 2, .passes = 1, .mode = graph::SyncMode::kAsync});
  for (const char* graph : {"pserver-0", "trainer-0", "trainer-1"}) workers_.Start(graph);
  AwaitOutputs("trainer-1", 1);
  workers_.Stop("trainer-1").IgnoreError();
  EXPECT_TRUE(workers_.Await("trainer-0").ok());
  EXPECT_TRUE(workers_.Await("pserver-0").ok());
  ExpectAllUsed(1);
}

TEST_F(WorkerTest, EndsWithTheClientOfAForegroundJob) {
  const kv::Lease lease = store_->GrantLease(absl::Hours(1)).value();
  ASSERT_TRUE(store_->Put(keys_.Client(), "", lease.id).ok());
  Create(programs_, {.trainers = 2, .passes = 100000, .pservers = 2}, {.foreground = true});
  const auto graphs = {"pserver-0", "pserver-1", "trainer-0", "trainer-1"};
  for (const char* graph : graphs) workers_.Start(graph);
  AwaitOutputs("trainer-0", 5);
  ASSERT_TRUE(store_->RevokeLease(lease.id).ok());
  for (const char* graph : graphs) {
    const absl::Status ended = workers_.Await(graph);
    EXPECT_TRUE(IsFinal(ended)) << graph << " " << ended;
    EXPECT_EQ(ended.message(), "the job has failed: the client of this foreground job is gone") << graph;
  }
  EXPECT_EQ(Meta().state, JobState::kFailed);
  // Whoever starts now ends at once.
  workers_.Start("trainer-0");
  EXPECT_TRUE(IsFinal(workers_.Await("trainer-0")));
}

TEST_F(WorkerTest, EndsIfTheClientIsGoneBeforeItStarts) {
  Create(programs_, {}, {.foreground = true});
  workers_.Start("trainer-0");
  EXPECT_THAT(std::string(workers_.Await("trainer-0").message()), HasSubstr("the client of this foreground"));
}

TEST_F(WorkerTest, OutlivesTheClientOfABackgroundJob) {
  Create(programs_, {.passes = 2});
  for (const char* graph : {"pserver-0", "trainer-0"}) workers_.Start(graph);
  EXPECT_TRUE(workers_.Await("trainer-0").ok());
  EXPECT_TRUE(workers_.Await("pserver-0").ok());
}

TEST_F(WorkerTest, FailsTheJobIfTrainersSeeOtherData) {
  Create(programs_, {.trainers = 2, .passes = 100000});
  for (const char* graph : {"pserver-0", "trainer-0"}) workers_.Start(graph);
  while (!store_->Get(keys_.Pod("trainer-0"))->kv) std::this_thread::yield();
  // Another file of that name: the first trainer keeps the one that it has opened.
  Records more = MakeRecords();
  more.push_back(more.front());
  const Folder other;
  WriteCsv(other, more);
  std::filesystem::rename(other.At("data.csv"), folder_.At("data.csv"));
  workers_.Start("trainer-1");
  for (const char* graph : {"pserver-0", "trainer-0", "trainer-1"}) {
    const absl::Status ended = workers_.Await(graph);
    EXPECT_TRUE(IsFinal(ended)) << graph << " " << ended;
    EXPECT_THAT(std::string(ended.message()), HasSubstr("counts 40")) << graph;
  }
  EXPECT_THAT(Meta().reason, HasSubstr("all must see the same data"));
}

TEST_F(WorkerTest, FailsTheJobIfANumberIsNone) {
  Records records = MakeRecords();
  records[70].back() = 1e30F;  // its square is none
  Create(Net(WriteCsv(folder_, records), 5, kAdam), {.trainers = 2, .passes = 100000});
  for (const char* graph : {"pserver-0", "trainer-0", "trainer-1"}) workers_.Start(graph, true);
  for (const char* graph : {"pserver-0", "trainer-0", "trainer-1"}) {
    const absl::Status ended = workers_.Await(graph);
    EXPECT_TRUE(IsFinal(ended)) << graph << " " << ended;
  }
  EXPECT_THAT(Meta().reason, testing::StartsWith("trainer-0: "));
}

class NonFiniteWorkerTest : public WorkerTest, public testing::WithParamInterface<graph::SyncMode> {
 protected:
  // Two trainers and two pservers, to the end of all of them.
  void RunAll(const Programs& programs, graph::OnNonFinite policy) {
    Create(programs, {.trainers = 2, .passes = 2, .pservers = 2, .mode = GetParam()},
           {.on_nonfinite = policy});
    const auto graphs = {"pserver-0", "pserver-1", "trainer-0", "trainer-1"};
    for (const char* graph : graphs) workers_.Start(graph);
    for (const char* graph : graphs) workers_.Await(graph).IgnoreError();
  }
  std::string WithBadRecord() {
    Records records = MakeRecords();
    records[150].back() = 1e30F;  // its square is infinite
    return WriteCsv(folder_, records);
  }
  std::vector<GraphCheckpoints> Checkpoints() {
    return GetCheckpoints(*store_, keys_, {"pserver-0", "pserver-1"}).value();
  }
};
INSTANTIATE_TEST_SUITE_P(, NonFiniteWorkerTest,
                         testing::Values(graph::SyncMode::kSync, graph::SyncMode::kAsync),
                         [](const auto& mode) {
                           return mode.param == graph::SyncMode::kSync ? "Sync" : "Async";
                         });

TEST_P(NonFiniteWorkerTest, LossFailsTheJobAtItsStep) {
  RunAll(Net(WithBadRecord(), 5, kAdam), graph::OnNonFinite::kFail);
  EXPECT_EQ(Meta().state, JobState::kFailed);
  EXPECT_THAT(Meta().reason, testing::MatchesRegex("trainer-0: .*step 30: element 0 of mean_0 is inf: .*"));
  for (const GraphCheckpoints& checkpoints : Checkpoints()) {
    for (const Checkpoint& checkpoint : checkpoints.kept) EXPECT_FALSE(checkpoint.nonfinite);
  }
}

TEST_P(NonFiniteWorkerTest, ParameterFailsTheJobAtItsStep) {
  Records records = MakeRecords();
  for (auto& record : records) record.back() = 1e18F;  // squares are finite, steps along gradients are not
  RunAll(Net(WriteCsv(folder_, records), 5, {.update = graph::Sgd(), .rate = 1e30}),
         graph::OnNonFinite::kFail);
  EXPECT_EQ(Meta().state, JobState::kFailed);
  EXPECT_THAT(Meta().reason, testing::ContainsRegex("step 0[^0-9].*element [0-9]+ of fc_.* is -?inf"));
}

TEST_P(NonFiniteWorkerTest, CheckpointsAreMarkedAndTheLastFiniteOneStays) {
  RunAll(Net(WithBadRecord(), 5, kAdam), graph::OnNonFinite::kWarn);
  EXPECT_EQ(Meta().state, JobState::kComplete) << Meta().reason;
  const std::vector<GraphCheckpoints> all = Checkpoints();
  for (const GraphCheckpoints& checkpoints : all) {
    EXPECT_TRUE(checkpoints.kept.back().nonfinite);
    EXPECT_FALSE(checkpoints.kept.front().nonfinite);
    for (const Checkpoint& checkpoint : checkpoints.kept)
      EXPECT_EQ(graph::FindNonFinite(ReadCheckpoint(checkpoint)->variables).empty(), !checkpoint.nonfinite);
  }
  if (GetParam() == graph::SyncMode::kAsync) return;  // there each pserver has steps of its own
  // On a slow disk checkpoints are left out.
  EXPECT_THAT(NewestFiniteStep(all, Meta().layout), testing::Optional(testing::AnyOf(10, 20, 30)));
}

TEST_P(NonFiniteWorkerTest, GradientIsLeftOutOfAJobThatSkips) {
  RunAll(Net(WithBadRecord(), 5, kAdam), graph::OnNonFinite::kSkip);
  ExpectAllUsed(2);
  for (const GraphCheckpoints& checkpoints : Checkpoints()) {
    EXPECT_FALSE(checkpoints.kept.back().nonfinite);
    EXPECT_EQ(graph::FindNonFinite(ReadCheckpoint(checkpoints.kept.back())->variables), "");
  }
}

TEST_F(WorkerTest, FailsTheJobIfItsDataIsNotThere) {
  Create(programs_, {});
  std::filesystem::remove(folder_.At("data.csv"));
  workers_.Start("pserver-0");
  workers_.Start("trainer-0");
  EXPECT_TRUE(IsFinal(workers_.Await("trainer-0")));
  EXPECT_TRUE(IsFinal(workers_.Await("pserver-0")));
  EXPECT_THAT(Meta().reason, HasSubstr("data.csv"));
}

TEST_F(WorkerTest, EndsWithAJobThatIsDeleted) {
  Create(programs_, {.passes = 100000});
  for (const char* graph : {"pserver-0", "trainer-0"}) workers_.Start(graph);
  AwaitOutputs("trainer-0", 1);
  ASSERT_TRUE(DeleteJob(*store_, keys_).ok());
  for (const char* graph : {"pserver-0", "trainer-0"}) EXPECT_TRUE(IsFinal(workers_.Await(graph))) << graph;
}

TEST_F(WorkerTest, DoesNotFailTheJobByANameThatIsNone) {
  Create(programs_, {});
  workers_.Start("tariner-0");
  EXPECT_TRUE(absl::IsInvalidArgument(workers_.Await("tariner-0")));
  EXPECT_EQ(Meta().state, JobState::kWaiting);
}

TEST(IsFinal, IsNotWhatAnotherStartMayMend) {
  for (const absl::Status& status :
       {absl::OkStatus(), absl::UnavailableError("no store"), absl::CancelledError("stopped"),
        absl::DeadlineExceededError("slow"), absl::AbortedError("again"), absl::UnknownError("broken")}) {
    EXPECT_FALSE(IsFinal(status)) << status;
  }
  for (const absl::Status& status :
       {absl::InvalidArgumentError("a graph"), absl::FailedPreconditionError("data"),
        absl::NotFoundError("no job"), absl::DataLossError("a checkpoint")}) {
    EXPECT_TRUE(IsFinal(status)) << status;
  }
}

}  // namespace
}  // namespace trainyard::ps
