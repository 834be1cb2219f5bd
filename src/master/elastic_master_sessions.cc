// What workers say to the master, and what they are told.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "master/elastic_master.h"

namespace trainyard::master {
namespace {

constexpr std::size_t kMostErrorBytes = 2000;
constexpr tasks::WorkerIndex kMostIndex = 1 << 20;

wire::Task WireTask(const tasks::Task& task) {
  wire::Task out;
  out.set_id(task.id);
  out.set_kind(static_cast<std::uint32_t>(task.kind));
  out.set_epoch(task.epoch);
  out.set_begin(task.records.begin);
  out.set_end(task.records.end);
  out.set_version(task.version);
  return out;
}

}  // namespace

void ElasticMaster::OnMessage(const std::shared_ptr<Session>& session, ps::Unpacked message) {
  wire::Request request;
  if (!message.Head(request) || request.what_case() == wire::Request::WHAT_NOT_SET)
    return session->Close(absl::InvalidArgumentError("a message that cannot be read"));
  const Call call{session, request.number()};
  const bool pserver = request.has_hello() ? request.hello().pserver() : pservers_.contains(session.get());
  if (pserver) return OnPserver(call, request);
  const MutexLock lock(mu_);
  if (request.has_hello()) return OnHello(call, request.hello());
  const auto found = sessions_.find(session.get());
  if (found == sessions_.end())
    return session->Close(absl::InvalidArgumentError("a stream begins with a hello"));
  const tasks::WorkerIndex worker = found->second;
  const auto known = workers_.find(worker);
  if (known == workers_.end() || known->second.session != session)
    return session->Close(absl::FailedPreconditionError("another process has this worker's place now"));
  known->second.active = Clock::System().Steady();
  log_->Gather();
  switch (request.what_case()) {
    case wire::Request::kNext:
      return OnNext(call, worker, request.next());
    case wire::Request::kPush:
      return learner_->Push(call, worker, std::move(*request.mutable_push()), std::move(message));
    case wire::Request::kPull:
      return learner_->Pull(call, request.pull());
    case wire::Request::kOffer:
      return learner_->Offer(call, std::move(*request.mutable_offer()), std::move(message));
    case wire::Request::kServe:
    case wire::Request::kObeyed:
      return session->Close(absl::InvalidArgumentError("only pservers take orders"));
    case wire::Request::kHello:
    case wire::Request::WHAT_NOT_SET:
      break;
  }
}

void ElasticMaster::OnPause() {
  const MutexLock lock(mu_);
  log_->Settle();
}

void ElasticMaster::OnPserver(const Call& call, const wire::Request& request) {
  if (shards_ == nullptr)
    return call.session->Close(
        absl::FailedPreconditionError("this job has no pservers: its master has the model"));
  if (request.has_hello()) {
    if (const absl::Status refused = shards_->Come(call.session, request.hello()); !refused.ok())
      return call.session->Close(refused);
    pservers_[call.session.get()] = request.hello().worker();
    wire::Answer answer;
    answer.mutable_welcome()->set_worker(request.hello().worker());
    answer.mutable_welcome()->set_generation(generation_);
    return call.Reply(std::move(answer));
  }
  const int index = pservers_.at(call.session.get());
  if (request.has_serve()) return shards_->Serve(call, index, request.serve().after());
  if (!request.has_obeyed())
    return call.session->Close(absl::InvalidArgumentError("a pserver takes orders and does nothing else"));
  shards_->Obey(index, request.obeyed());
  call.Reply({});
}

void ElasticMaster::OnEnd(const std::shared_ptr<Session>& session) {
  if (pservers_.erase(session.get()) > 0) return shards_->Leave(session);
  learner_->Forget(session);
  const MutexLock lock(mu_);
  std::erase_if(waiting_, [&](const auto& waiting) { return waiting.first.session == session; });
  const auto found = sessions_.find(session.get());
  if (found == sessions_.end()) return;
  const auto known = workers_.find(found->second);
  sessions_.erase(found);
  if (known == workers_.end() || known->second.session != session) return;
  known->second.session = nullptr;
  known->second.left = Clock::System().Steady();
  // A master that goes takes nothing from its workers; whoever comes after it knows them.
  if (stopping_) return;
  // One whose job is over is not waited for.
  if (IsOver(phase_)) {
    Release(known->first);
    workers_.erase(known);
    GoOn();
  }
}

tasks::WorkerIndex ElasticMaster::FreeIndex() const {
  tasks::WorkerIndex index = 0;
  while (workers_.contains(index)) ++index;
  return index;
}

void ElasticMaster::OnHello(const Call& call, const wire::Hello& hello) {
  if (hello.worker() < -1 || hello.worker() > kMostIndex || hello.incarnation() <= 0)
    return call.session->Close(absl::InvalidArgumentError("a hello of nobody that could be"));
  // One that comes late prepares nothing for a job that is over.
  if (phase_ == Phase::kFailed)
    return call.session->Close(absl::FailedPreconditionError(StrCat("the job has failed: ", reason_)));
  if (phase_ == Phase::kComplete) return call.session->Close(absl::OutOfRangeError("the job is over"));
  const tasks::WorkerIndex index = hello.worker() < 0 ? FreeIndex() : hello.worker();
  Worker& worker = workers_[index];
  if (worker.incarnation != hello.incarnation()) {
    // Another process: whatever the one before had is for others.
    if (worker.incarnation != 0) Release(index);
    worker.takes_part = false;
    worker.records = 0;
    log::Info("a worker has come", {{"worker", index}, {"pod", hello.pod()}});
  }
  if (worker.session != nullptr && worker.session != call.session) {
    // A stream that this very process has given up, or a process that is not to come again.
    sessions_.erase(worker.session.get());
    worker.session->Close(worker.incarnation == hello.incarnation()
                              ? absl::AbortedError("another stream of this worker has come")
                              : absl::FailedPreconditionError("another process has this worker's place now"));
  }
  worker.incarnation = hello.incarnation();
  worker.pod = Shortened(hello.pod(), 253);
  worker.session = call.session;
  worker.active = Clock::System().Steady();
  sessions_[call.session.get()] = index;
  Do(tasks::Join{index, hello.incarnation()});
  // What it was given and never heard of.
  for (const tasks::Task& task : queue().TasksOf(index)) {
    if (std::ranges::find(hello.holding(), task.id) == hello.holding().end()) GiveBack(index, task);
  }
  wire::Answer answer;
  wire::Welcome& welcome = *answer.mutable_welcome();
  welcome.set_worker(index);
  welcome.set_generation(generation_);
  welcome.set_job(Print(spec_));
  welcome.set_offer_model(!model_ready_ && spec_.kind == JobKind::kTrain && !spec_.tasks_only);
  log_->WhenDurable([call, answer = std::move(answer)] { call.Reply(answer); });
  GoOn();
}

void ElasticMaster::OnNext(const Call& call, tasks::WorkerIndex worker, const wire::Next& next) {
  for (const wire::Report& report : next.reports()) OnReport(worker, report);
  if (next.reports_size() > 0) GoOn();
  if (!next.wants()) {
    wire::Answer answer;
    answer.mutable_given()->set_verdict(wire::Given::kNothing);
    return log_->WhenDurable([call, answer = std::move(answer)] { call.Reply(answer); });
  }
  if (!Give(call, worker)) waiting_.emplace_back(call, worker);
}

void ElasticMaster::OnReport(tasks::WorkerIndex worker, const wire::Report& report) {
  const std::optional<tasks::Queue::Leased> leased = queue().FindTask(report.task());
  if (!leased || leased->worker != worker) return;  // told before, or not its own any more
  switch (report.outcome()) {
    case wire::Report::kReturned:
      return GiveBack(worker, leased->task);
    case wire::Report::kFailed: {
      const auto accepted = accepted_.find(report.task());
      if (accepted != accepted_.end() && accepted->second > leased->task.records.begin) {
        // What failed is behind that; it counts when it fails the first time that it is begun with.
        return GiveBack(worker, leased->task);
      }
      accepted_.erase(report.task());
      log::Warn("a task has failed", {{"worker", worker},
                                      {"records", tasks::Describe(leased->task)},
                                      {"error", Shortened(report.error(), kMostErrorBytes)}});
      Do(tasks::Fail{worker, report.task(), Shortened(report.error(), kMostErrorBytes)});
      if (!queue().failure().empty()) FailNow(queue().failure());
      return;
    }
    default:
      break;
  }
  // What is trained here is done when its gradients are applied, whatever the worker says.
  if (leased->task.kind == tasks::Kind::kTraining && !spec_.tasks_only) return;
  TakesPart(worker, leased->task.records.size());
  tasks::Finish finish{worker, report.task(), {}};
  for (const wire::Metric& metric : report.metrics())
    finish.metrics.push_back({Shortened(metric.name(), 128), metric.value()});
  Do(finish);
}

void ElasticMaster::GiveBack(tasks::WorkerIndex worker, const tasks::Task& task) {
  const auto accepted = accepted_.find(task.id);
  if (accepted == accepted_.end() || accepted->second <= task.records.begin) {
    if (accepted != accepted_.end()) accepted_.erase(accepted);
    Do(tasks::Return{worker, task.id});
    return;
  }
  // Its gradients are summed already: so much of it is to be counted, and the rest is for others.
  if (accepted->second < task.records.end) ++wholly_accepted_;
  Do(tasks::Keep{task.id, accepted->second});
}

void ElasticMaster::TakesPart(tasks::WorkerIndex worker, std::int64_t records) {
  const auto known = workers_.find(worker);
  if (known == workers_.end()) return;
  known->second.records += records;
  known->second.version = version_;
  if (std::exchange(known->second.takes_part, true)) return;
  log::Info("a worker takes part", {{"worker", worker}, {"pod", known->second.pod}});
}

void ElasticMaster::Release(tasks::WorkerIndex worker) {
  if (queue().HasTasks(worker)) given_back_ = Clock::System().Steady();
  for (const tasks::Task& task : queue().TasksOf(worker)) GiveBack(worker, task);
  Do(tasks::Leave{worker});
  std::erase_if(waiting_, [&](const auto& waiting) { return waiting.second == worker; });
}

void ElasticMaster::Tell(const Call& call, wire::Given::Verdict verdict, const std::string& reason) {
  wire::Answer answer;
  answer.mutable_given()->set_verdict(verdict);
  answer.mutable_given()->set_reason(reason);
  log_->WhenDurable([call, answer = std::move(answer)] { call.Reply(answer); });
}

// False: there is nothing to be told yet.
bool ElasticMaster::Give(const Call& call, tasks::WorkerIndex worker) {
  if (phase_ == Phase::kFailed) {
    Tell(call, wire::Given::kFailed, reason_);
    return true;
  }
  if (phase_ == Phase::kComplete) {
    Tell(call, wire::Given::kOver);
    return true;
  }
  if (!model_ready_ && spec_.kind == JobKind::kTrain) return false;
  if (!queue().HasFor(worker)) return false;  // nothing is stored for nothing
  const tasks::Answer leased = Do(tasks::Lease{worker});
  if (given_back_) {
    log::Info("what a lost worker had is taken over",
              {{"worker", worker}, {"records", tasks::Describe(leased.task)}});
    given_back_.reset();
  }
  wire::Answer answer;
  answer.mutable_given()->set_verdict(wire::Given::kTask);
  *answer.mutable_given()->mutable_task() = WireTask(leased.task);
  log_->WhenDurable([call, answer = std::move(answer)] { call.Reply(answer); });
  return true;
}

void ElasticMaster::Serve() {
  std::deque<std::pair<Call, tasks::WorkerIndex>> still;
  while (!waiting_.empty()) {
    const auto [call, worker] = waiting_.front();
    waiting_.pop_front();
    if (!Give(call, worker)) still.emplace_back(call, worker);
  }
  waiting_ = std::move(still);
}

}  // namespace trainyard::master
