// Jobs whose model is on pservers.
#include "master/pserver/pserver.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "base/ids.h"
#include "gmock/gmock.h"
#include "graph/ir/codec.h"
#include "graph/pass/halves.h"
#include "gtest/gtest.h"
#include "master/master_testing.h"
#include "master/worker/shard_links.h"

namespace trainyard::master {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kWide = 4096;  // units, so that parameters are cut

using Pservers = std::vector<std::unique_ptr<PserverThread>>;

Pservers StartPservers(const TestElasticJob& job, int count) {
  Pservers pservers;
  for (int i = 0; i < count; ++i) pservers.push_back(std::make_unique<PserverThread>(job.Pserver(i)));
  return pservers;
}

// Or the end, which workers may reach while this thread waits for a processor.
void AwaitVersion(TestElasticJob& job, std::int64_t version) {
  for (;;) {
    const Progress progress = job.master().GetProgress();
    if (progress.version >= version || progress.phase == Phase::kComplete) return;
    absl::SleepFor(absl::Milliseconds(1));
  }
}

void AwaitCheckpoint(TestElasticJob& job) {
  while (!job.master().GetProgress().checkpoint.starts_with("version")) absl::SleepFor(absl::Milliseconds(1));
}

TEST(Pservers, LearnWhatOneProcessWould) {
  for (const int count : {1, 2, 3}) {
    TestElasticJob job(
        {.minibatch = 20, .minibatches_per_task = 4, .epochs = 3, .shuffle = "none", .pservers = count},
        ps::kAdam, kWide);
    job.Start();
    const Pservers pservers = StartPservers(job, count);
    WorkerThread worker(job.Worker(0));
    const absl::Status ended = job.master().Wait();
    ASSERT_TRUE(ended.ok()) << ended;
    EXPECT_TRUE(worker.Join().ok());
    for (const auto& pserver : pservers) EXPECT_TRUE(pserver->Join().ok()) << "the job is over";
    EXPECT_EQ(job.master().GetProgress().total_records, 3 * ps::kRecords);
    graph::Scope scope;
    ps::TrainHere(job.programs(), 1, 20, 3, scope);
    ExpectVariables(job.Learnt(), scope, 0);
  }
}

TEST(Pservers, UseEachRecordOnceWhateverMakesAStep) {
  for (const JobSpec& spec : {JobSpec{.grads_to_wait = 3}, JobSpec{.async = true, .modulate_rate = true},
                              JobSpec{.staleness = 2}}) {
    TestElasticJob job(spec);
    job.spec().minibatch = 10;
    job.spec().minibatches_per_task = 3;
    job.spec().epochs = 4;
    job.spec().pservers = 2;
    job.Start();
    const Pservers pservers = StartPservers(job, 2);
    std::vector<std::unique_ptr<WorkerThread>> workers;
    for (int i = 0; i < 4; ++i) workers.push_back(std::make_unique<WorkerThread>(job.Worker(i)));
    const absl::Status ended = job.master().Wait();
    ASSERT_TRUE(ended.ok()) << ended;
    for (const auto& worker : workers) EXPECT_TRUE(worker->Join().ok());
    EXPECT_EQ(job.master().GetProgress().total_records, 4 * ps::kRecords);
    EXPECT_LT(*job.master().GetProgress().loss, 0.5);
  }
}

TEST(Pservers, GoBackToACheckpointWithAMasterThatIsStartedAgain) {
  TestElasticJob job({.minibatch = 20,
                      .minibatches_per_task = 4,
                      .epochs = 10,
                      .shuffle = "none",
                      .checkpoint_steps = 7,
                      .pservers = 2});
  job.Start();
  const Pservers pservers = StartPservers(job, 2);
  WorkerThread worker(job.Worker(0));
  AwaitVersion(job, 50);
  AwaitCheckpoint(job);
  job.Kill();
  job.Start();  // pservers and worker find it
  const absl::Status ended = job.master().Wait();
  ASSERT_TRUE(ended.ok()) << ended;
  EXPECT_EQ(job.master().GetProgress().total_records, 10 * ps::kRecords);
  graph::Scope scope;
  ps::TrainHere(job.programs(), 1, 20, 10, scope);
  ExpectVariables(job.Learnt(), scope, 0);
}

TEST(Pservers, TakeTheJobBackToACheckpointWhenOneIsLost) {
  TestElasticJob job({.minibatch = 20,
                      .minibatches_per_task = 4,
                      .epochs = 10,
                      .shuffle = "none",
                      .checkpoint_steps = 7,
                      .pservers = 2},
                     ps::kAdam, kWide);
  job.Start();
  Pservers pservers = StartPservers(job, 2);
  WorkerThread worker(job.Worker(0));
  AwaitVersion(job, 30);
  AwaitCheckpoint(job);
  pservers[1] = nullptr;
  job.master().PserverIsGone(1, "pserver-1");
  const absl::Status lost = job.master().Wait();
  EXPECT_TRUE(absl::IsAborted(lost)) << lost;
  EXPECT_THAT(std::string(lost.message()), HasSubstr("pserver 1 (pserver-1) has ended"));
  job.Kill();
  job.Start();
  pservers[1] = std::make_unique<PserverThread>(job.Pserver(1));
  const absl::Status ended = job.master().Wait();
  ASSERT_TRUE(ended.ok()) << ended;
  EXPECT_EQ(job.master().GetProgress().total_records, 10 * ps::kRecords);
  graph::Scope scope;
  ps::TrainHere(job.programs(), 1, 20, 10, scope);
  ExpectVariables(job.Learnt(), scope, 0);
}

TEST(Pservers, AreLostWhenAnotherProcessComesInTheirPlace) {
  TestElasticJob job({.minibatch = 20, .epochs = 1000, .pservers = 1});
  job.Start();
  const PserverThread first(job.Pserver(0));
  const WorkerThread worker(job.Worker(0));
  AwaitVersion(job, 3);
  const PserverThread second(job.Pserver(0));
  const absl::Status lost = job.master().Wait();
  EXPECT_TRUE(absl::IsAborted(lost)) << lost;
  EXPECT_THAT(std::string(lost.message()), HasSubstr("pserver 0 (pserver-0) was started again"));
}

TEST(Pservers, FailTheJobWhenTheyAreLostTimeAndAgainBeforeAStep) {
  TestElasticJob job({.minibatch = 20, .pservers = 1});
  for (int i = 0; i < 9; ++i) {
    job.Start(LastEnd{.cause = "exited 76", .early = true});
    job.Kill();
  }
  job.Start();  // in another pod
  EXPECT_EQ(job.master().GetProgress().master_restarts.count, 9);
  auto pserver = std::make_unique<PserverThread>(job.Pserver(0));
  while (std::ranges::none_of(job.master().GetPservers(), &PserverView::works))
    absl::SleepFor(absl::Milliseconds(1));
  pserver.reset();
  const absl::Status ended = job.master().Wait();
  EXPECT_EQ(job.master().GetProgress().phase, Phase::kFailed);
  EXPECT_THAT(std::string(ended.message()), HasSubstr("as 9 times before without a step in between"));
}

// A port that was free a moment ago.
int FreePort() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {::htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  TY_CHECK(::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
               ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0,
           "there is a free port");
  ::close(fd);
  return ::ntohs(address.sin_port);
}

// Sends `bytes` to a port of this machine, and leaves.
void SendTo(int port, const std::string& bytes) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address{.sin_family = AF_INET,
                            .sin_port = ::htons(static_cast<std::uint16_t>(port)),
                            .sin_addr = {::htonl(INADDR_LOOPBACK)}};
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    (void)::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::close(fd);
}

TEST(Pservers, GoOnWhileTheirPortsGetRandomBytes) {
  TestElasticJob job({.minibatch = 10, .minibatches_per_task = 4, .epochs = 20, .pservers = 2});
  job.Start();
  std::vector<int> ports = {std::stoi(job.Address().substr(job.Address().rfind(':') + 1))};
  Pservers pservers;
  for (int i = 0; i < 2; ++i) {
    PserverOptions options = job.Pserver(i);
    ports.push_back(FreePort());
    options.listen = "127.0.0.1:" + std::to_string(ports.back());
    pservers.push_back(std::make_unique<PserverThread>(options));
  }
  WorkerThread worker(job.Worker(0));
  AwaitVersion(job, 10);
  IdSource dice(21);
  for (int i = 0; i < 600; ++i) {
    std::string bytes = i % 2 == 0 ? "" : "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for (int k = 0; k < 500; ++k) bytes += static_cast<char>(dice.Next());
    SendTo(ports[static_cast<std::size_t>(i) % ports.size()], bytes);
  }
  const absl::Status ended = job.master().Wait();
  ASSERT_TRUE(ended.ok()) << ended;
  EXPECT_EQ(job.master().GetProgress().total_records, 20 * ps::kRecords);
  EXPECT_EQ(job.master().GetProgress().version, 20 * ps::kRecords / 10) << "no step was made twice";
}

TEST(Pservers, GoOnInAnotherNumber) {
  TestElasticJob job(
      {.minibatch = 20, .minibatches_per_task = 4, .epochs = 12, .shuffle = "none", .checkpoint_steps = 5},
      ps::kAdam, kWide);
  // One after the other, each goes on from where the one before was stopped.
  for (const int count : {2, 3, 0, 1}) {
    job.spec().pservers = count;
    job.Start();
    const Pservers pservers = StartPservers(job, count);
    WorkerThread worker(job.Worker(0));
    const std::int64_t version = job.master().GetProgress().version;
    if (count == 1) {
      const absl::Status ended = job.master().Wait();
      ASSERT_TRUE(ended.ok()) << ended;
      EXPECT_TRUE(worker.Join().ok());
      break;
    }
    AwaitVersion(job, version + 30);
    job.master().Stop();
    worker.Stop();
    for (const auto& pserver : pservers) pserver->Stop();
    job.Kill();
  }
  EXPECT_EQ(job.master().GetProgress().total_records, 12 * ps::kRecords);
  graph::Scope scope;
  ps::TrainHere(job.programs(), 1, 20, 12, scope);
  ExpectVariables(job.Learnt(), scope, 0);
}

TEST(Pservers, GiveEvaluatorsAVersionThatDoesNotChange) {
  TestElasticJob job(
      {.minibatch = 20, .minibatches_per_task = 2, .epochs = 3, .evaluation_steps = 10, .pservers = 2});
  job.spec().validation_data = {job.file()};
  job.Start();
  const Pservers pservers = StartPservers(job, 2);
  WorkerThread first(job.Worker(0));
  WorkerThread second(job.Worker(1));
  const absl::Status ended = job.master().Wait();
  ASSERT_TRUE(ended.ok()) << ended;
  EXPECT_EQ(job.master().GetProgress().evaluated, 60);
  ASSERT_EQ(job.master().GetProgress().metrics.size(), 1);
  // The same model evaluated without pservers.
  TestElasticJob again({.kind = JobKind::kEvaluate, .minibatch = 20});
  again.spec().training_data.clear();
  again.spec().validation_data = {job.file()};
  again.spec().init_from = job.spec().checkpoint_dir;
  again.Start();
  WorkerThread evaluator(again.Worker(0));
  ASSERT_TRUE(again.master().Wait().ok());
  EXPECT_NEAR(again.master().GetProgress().metrics.at(0).value, job.master().GetProgress().metrics[0].value,
              1e-6);
}

TEST(Pservers, TakeFirstValuesThatAWorkerOffers) {
  TestElasticJob job({.minibatch = 10, .minibatches_per_task = 4, .pservers = 2});
  job.spec().program.clear();
  job.spec().model = "model.py";
  job.Start();
  const Pservers pservers = StartPservers(job, 2);
  auto trainer = WorkerTrainer::Connect(job.Worker(0));
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  const auto learning =
      graph::MakeUpdate({{.name = "w", .dims = {3, 2}}}, {.update = graph::Sgd(), .rate = 1.0});
  ASSERT_TRUE(learning.ok()) << learning.status();
  graph::Tensor w(graph::DataType::kFloat32, {3, 2});
  for (int i = 0; i < 6; ++i) w.data<float>()[i] = static_cast<float>(i);
  ASSERT_TRUE(
      (*trainer)->Offer({{"w", w}}, graph::Encode(learning->main), graph::Encode(learning->startup)).ok());
  (*trainer)->Start([](const tasks::Task&, tasks::Range) { return std::make_shared<int>(0); });
  const auto pulled = (*trainer)->Pull(-1);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  ASSERT_EQ(pulled->values.size(), 1);
  EXPECT_EQ(std::get<graph::Tensor>(pulled->values[0].second).data<float>()[5], 5);
  const auto batch = (*trainer)->Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  graph::Tensor gradient(graph::DataType::kFloat32, {3, 2});
  gradient.data<float>()[5] = 2;
  const auto pushed = (*trainer)->Push(
      *batch, {.generation = pulled->generation, .version = 0, .values = {{"w@GRAD", gradient}}});
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  EXPECT_EQ(pushed->verdict, PushVerdict::kAccepted);
  ASSERT_TRUE(pushed->model.has_value());
  EXPECT_EQ(std::get<graph::Tensor>(pushed->model->values[0].second).data<float>()[5], 3);
}

TEST(Pservers, AreAskedForWhileTheyAreMissing) {
  TestElasticJob job({.minibatch = 10, .pservers = 2});
  job.Start();
  EXPECT_EQ(job.master().GetProgress().waiting, "pserver 0, 1 to come");
  const PserverThread pserver(job.Pserver(1));
  while (job.master().GetProgress().pservers < 1) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(job.master().GetProgress().waiting, "pserver 0 to come");
}

TEST(Pservers, AreRefusedWhereThereIsNoPlaceForThem) {
  TestElasticJob with({.minibatch = 10, .pservers = 1});
  with.Start();
  EXPECT_THAT(std::string(PserverThread(with.Pserver(1)).Join().message()),
              HasSubstr("there is no pserver 1"));
  TestElasticJob without({.minibatch = 10});
  without.Start();
  EXPECT_THAT(std::string(PserverThread(without.Pserver(0)).Join().message()), HasSubstr("has no pservers"));
  PserverOptions stranger = with.Pserver(0);
  stranger.token = "guess";
  EXPECT_TRUE(absl::IsUnauthenticated(PserverThread(stranger).Join()));
}

TEST(CutGradients, GivesEachTheRowsThatItHas) {
  graph::SparseRows rows{
      .height = 10, .rows = {1, 7, 3}, .value = graph::Tensor(graph::DataType::kFloat32, {3, 2})};
  for (int i = 0; i < 6; ++i) rows.value.data<float>()[i] = static_cast<float>(i);
  wire::Variable wanted;
  wanted.set_name("w@GRAD.block1");
  wanted.add_dims(5);
  wanted.add_dims(2);
  wanted.mutable_slice()->set_of("w@GRAD");
  wanted.mutable_slice()->set_offset(6);  // rows [3, 8)
  const NamedValues cut = CutGradients({{"w@GRAD", rows}}, {wanted});
  ASSERT_EQ(cut.size(), 1);
  EXPECT_EQ(cut[0].first, "w@GRAD.block1");
  const auto& own = std::get<graph::SparseRows>(cut[0].second);
  EXPECT_EQ(own.height, 5);
  EXPECT_THAT(own.rows, ElementsAre(4, 0));
  EXPECT_THAT(own.value.span<float>(), ElementsAre(2, 3, 4, 5));
}

}  // namespace
}  // namespace trainyard::master
