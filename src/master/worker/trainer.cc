#include "master/worker/trainer.h"

#include <algorithm>
#include <deque>
#include <set>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "master/worker/shard_links.h"
#include "master/worker/transfers.h"

namespace trainyard::master {
namespace {

constexpr std::size_t kAhead = 3;  // minibatches that are ready
constexpr absl::Duration kGoodbye = absl::Seconds(2);
constexpr absl::Duration kBetweenPulls = absl::Milliseconds(20);

tasks::Task FromWire(const wire::Task& task) {
  return {.id = task.id(),
          .kind = static_cast<tasks::Kind>(task.kind()),
          .epoch = task.epoch(),
          .records = {task.begin(), task.end()},
          .version = task.version()};
}

class LinkedTrainer final : public WorkerTrainer {
 public:
  ~LinkedTrainer() override {
    Stop();
    if (feeder_.joinable()) feeder_.join();
    link_.reset();  // its thread asks what this holds
  }

  absl::Status Begin(const WorkerOptions& options) {
    const std::int64_t incarnation = NewIncarnation();
    TY_ASSIGN_OR_RETURN(
        link_, Link::Connect({.address = options.master,
                              .token = options.token,
                              .worker = options.index,
                              .incarnation = incarnation,
                              .pod = options.pod,
                              .patience = options.patience,
                              .on_running = options.on_running,
                              .holding = [this] { return Holding(); },
                              .on_welcome = [this](const wire::Welcome& welcome) { OnWelcome(welcome); }}));
    TY_ASSIGN_OR_RETURN(job_, ParseJobSpec(link_->welcome().job()));
    if (job_.pservers == 0) return absl::OkStatus();
    const MutexLock lock(mu_);
    shards_ = std::make_unique<ShardLinks>(ShardLinksOptions{
        .token = options.token, .worker = index(), .incarnation = incarnation, .pod = options.pod});
    return absl::OkStatus();
  }

  const JobSpec& job() const override { return job_; }
  int index() const override { return link_->welcome().worker(); }

  void Start(Load load) override {
    load_ = std::move(load);
    feeder_ = std::thread([this] { Feed(); });
  }

  absl::StatusOr<Batch> Next() override {
    const MutexLock lock(mu_);
    for (;;) {
      if (!ready_.empty()) {
        Batch batch = std::move(ready_.front());
        ready_.pop_front();
        changed_.SignalAll();
        return batch;
      }
      if (!outcome_.ok()) return outcome_;
      changed_.Wait(mu_);
    }
  }

  absl::Status Offer(NamedValues values, std::string update, std::string startup) override {
    {
      const MutexLock lock(mu_);
      offer_ = std::make_shared<const Model>(Model{std::move(values), std::move(update), std::move(startup)});
    }
    if (!link_->welcome().offer_model()) return absl::OkStatus();
    return Await([this](Link::Done done) { StartOffer(std::move(done)); }).status();
  }

  absl::StatusOr<PulledModel> Pull(std::int64_t version) override {
    for (;;) {
      absl::StatusOr<PulledModel> model = job_.pservers > 0 ? PullParts(version) : PullOnce(version);
      // The newest may become another one while it is fetched; the master may have none yet.
      const bool again =
          version < 0 && (absl::IsAborted(model.status()) || absl::IsUnavailable(model.status()));
      if (!again) return model;
      if (Stopped()) return absl::CancelledError("the worker is stopping");
      AwaitStop(kBetweenPulls);
    }
  }

  absl::StatusOr<PushResult> Push(const Batch& batch, Gradient gradient) override {
    std::optional<wire::GradientName> name;
    if (job_.pservers > 0) {
      absl::StatusOr<wire::GradientName> told = Shards()->Push(gradient);
      if (absl::IsAborted(told.status())) {
        if (Stopped()) return absl::CancelledError("the worker is stopping");
        // Of a model that is not there any more: it is to be computed again.
        return PushResult{.verdict = PushVerdict::kStale};
      }
      TY_ASSIGN_OR_RETURN(name, std::move(told));
      gradient.values.clear();
    }
    TY_ASSIGN_OR_RETURN(const Reply reply, TellGradient(batch, gradient, name));
    const wire::Pushed& pushed = reply.head.pushed();
    PushResult result{.version = pushed.version()};
    switch (pushed.verdict()) {
      case wire::Pushed::kAccepted:
        result.verdict = PushVerdict::kAccepted;
        if (batch.last) Forget(batch.task.id);
        break;
      case wire::Pushed::kStale:
        result.verdict = PushVerdict::kStale;
        break;
      default:
        result.verdict = PushVerdict::kLost;
    }
    if (pushed.has_pulled()) {
      absl::StatusOr<PulledModel> model =
          job_.pservers > 0 ? Shards()->Pull(-1) : Collect(pushed.pulled(), reply.message);
      if (model.ok()) {
        result.model = *std::move(model);
      } else if (!absl::IsAborted(model.status())) {
        return model.status();
      }
    }
    return result;
  }

  void Finish(const tasks::Task& task, std::vector<tasks::Metric> metrics) override {
    wire::Report report;
    for (const tasks::Metric& metric : metrics) {
      wire::Metric& out = *report.add_metrics();
      out.set_name(metric.name);
      out.set_value(metric.value);
    }
    Tell(task, std::move(report));
  }
  void Fail(const tasks::Task& task, const std::string& error) override {
    wire::Report report;
    report.set_outcome(wire::Report::kFailed);
    report.set_error(error);
    Tell(task, std::move(report));
  }
  void Return(const tasks::Task& task) override {
    wire::Report report;
    report.set_outcome(wire::Report::kReturned);
    Tell(task, std::move(report));
  }
  // The master knows, unless it and the worker have misunderstood each other: then others get it all the
  // same.
  void Drop(const tasks::Task& task) override { Return(task); }

  void Stop() override {
    std::set<std::int64_t> held;
    {
      const MutexLock lock(mu_);
      if (stopping_) return;
      stopping_ = true;
      if (outcome_.ok()) outcome_ = absl::CancelledError("the worker is stopping");
      held = held_;
      changed_.SignalAll();
    }
    if (link_ == nullptr) return;
    if (ShardLinks* const shards = Shards()) shards->Drop(0);
    if (!held.empty()) Farewell(held);
    link_->Stop();
  }

 private:
  std::vector<std::int64_t> Holding() {
    const MutexLock lock(mu_);
    return {held_.begin(), held_.end()};
  }

  bool Stopped() {
    const MutexLock lock(mu_);
    return stopping_;
  }
  void AwaitStop(absl::Duration time) {
    const SteadyTime deadline = Clock::System().Steady() + time;
    const MutexLock lock(mu_);
    while (!stopping_ && changed_.WaitUntil(mu_, deadline)) {
    }
  }

  void Forget(std::int64_t task) {
    const MutexLock lock(mu_);
    held_.erase(task);
    std::erase_if(ready_, [&](const Batch& batch) { return batch.task.id == task; });
    changed_.SignalAll();
  }

  void Tell(const tasks::Task& task, wire::Report report) {
    Forget(task.id);
    wire::Request request;
    report.set_task(task.id);
    *request.mutable_next()->add_reports() = std::move(report);
    link_->Start(std::move(request), {}, [](const absl::StatusOr<Reply>&) {});
  }

  // What is not done goes to others at once, not when the stream breaks.
  void Farewell(const std::set<std::int64_t>& held) {
    wire::Request request;
    for (const std::int64_t task : held) {
      wire::Report& report = *request.mutable_next()->add_reports();
      report.set_task(task);
      report.set_outcome(wire::Report::kReturned);
    }
    auto told = std::make_shared<bool>(false);
    link_->Start(std::move(request), {}, [this, told](const absl::StatusOr<Reply>&) {
      const MutexLock lock(mu_);
      *told = true;
      changed_.SignalAll();
    });
    const SteadyTime deadline = Clock::System().Steady() + kGoodbye;
    const MutexLock lock(mu_);
    while (!*told && changed_.WaitUntil(mu_, deadline)) {
    }
  }

  // The master, of a gradient: all of it, or under which name pservers have it.
  absl::StatusOr<Reply> TellGradient(const Batch& batch, const Gradient& gradient,
                                     const std::optional<wire::GradientName>& name) {
    const auto fill = [&](wire::Request& request, std::int64_t offset, std::int64_t total) {
      wire::Push& push = *request.mutable_push();
      push.set_task(batch.task.id);
      push.set_begin(batch.records.begin);
      push.set_until(batch.records.end);
      push.set_generation(gradient.generation);
      push.set_version(gradient.version);
      push.set_offset(offset);
      push.set_total(total);
      push.set_loss(gradient.loss);
      push.set_pull(gradient.pull);
      if (name) *push.mutable_name() = *name;
      if (offset > 0) return;
      for (const auto& [variable, value] : gradient.values) *push.add_variables() = HeadOf(variable, value);
    };
    return Await([&](Link::Done done) { SendValues(*link_, gradient.values, fill, std::move(done)); });
  }

  // Also on the link's thread, which may begin before Begin() has ended.
  ShardLinks* Shards() {
    const MutexLock lock(mu_);
    return shards_.get();
  }

  // Whatever happens to the answer: another worker may have been faster.
  void OnWelcome(const wire::Welcome& welcome) {
    // What the pservers have is another model then, and they may be other pservers.
    if (ShardLinks* const shards = Shards()) shards->Drop(welcome.generation());
    if (welcome.offer_model()) StartOffer([](const absl::StatusOr<Reply>&) {});
  }

  void StartOffer(Link::Done done) {
    std::shared_ptr<const Model> model;
    {
      const MutexLock lock(mu_);
      model = offer_;
    }
    if (model == nullptr) return done(absl::NotFoundError("there is no model to offer"));
    SendValues(
        *link_, model->values,
        [&](wire::Request& request, std::int64_t offset, std::int64_t total) {
          wire::Offer& offer = *request.mutable_offer();
          offer.set_offset(offset);
          offer.set_total(total);
          if (offset > 0) return;
          offer.set_update(model->update);
          offer.set_startup(model->startup);
          for (const auto& [name, value] : model->values) *offer.add_variables() = HeadOf(name, value);
        },
        std::move(done));
  }

  absl::StatusOr<PulledModel> PullOnce(std::int64_t version) {
    wire::Request request;
    request.mutable_pull()->set_version(version);
    TY_ASSIGN_OR_RETURN(const Reply reply, link_->Ask(std::move(request)));
    return Collect(reply.head.pulled(), reply.message);
  }

  // The pservers have it; where they are is the master's to say.
  absl::StatusOr<PulledModel> PullParts(std::int64_t version) {
    ShardLinks& shards = *Shards();
    if (!shards.connected()) {
      wire::Request request;
      request.mutable_pull()->set_version(-1);
      TY_ASSIGN_OR_RETURN(const Reply reply, link_->Ask(std::move(request)));
      const wire::Pulled& pulled = reply.head.pulled();
      TY_RETURN_IF_ERROR(
          shards.Connect(pulled.generation(), {pulled.pservers().begin(), pulled.pservers().end()}));
    }
    return shards.Pull(version);
  }

  // The other parts of a model whose first one has come.
  absl::StatusOr<PulledModel> Collect(const wire::Pulled& first, const ps::Unpacked& message) {
    TY_ASSIGN_OR_RETURN(NamedValues values, CollectValues(*link_, first, message));
    return PulledModel{
        .generation = first.generation(), .version = first.version(), .values = std::move(values)};
  }

  void End(absl::Status outcome) {
    const MutexLock lock(mu_);
    if (outcome_.ok()) outcome_ = std::move(outcome);
    changed_.SignalAll();
  }

  void Feed() {
    while (!Stopped()) {
      wire::Request request;
      request.mutable_next()->set_wants(true);
      const absl::StatusOr<Reply> reply = link_->Ask(std::move(request));
      if (!reply.ok()) return End(reply.status());
      const wire::Given& given = reply->head.given();
      switch (given.verdict()) {
        case wire::Given::kTask:
          Work(FromWire(given.task()));
          continue;
        case wire::Given::kOver:
          return End(absl::OutOfRangeError("the job is over"));
        case wire::Given::kFailed:
          return End(absl::FailedPreconditionError(StrCat("the job has failed: ", given.reason())));
        default:
          return End(absl::InternalError("the master's answer makes no sense"));
      }
    }
  }

  bool Holds(std::int64_t task) {
    const MutexLock lock(mu_);
    return held_.contains(task) && !stopping_;
  }

  void Work(const tasks::Task& task) {
    {
      const MutexLock lock(mu_);
      held_.insert(task.id);
    }
    for (std::int64_t begin = task.records.begin; begin < task.records.end && Holds(task.id);) {
      const tasks::Range range{begin, std::min(begin + job_.minibatch, task.records.end)};
      absl::StatusOr<std::shared_ptr<void>> content = load_(task, range);
      if (!content.ok()) return Fail(task, std::string(Message(content.status())));
      Put({.task = task,
           .records = range,
           .last = range.end == task.records.end,
           .content = *std::move(content)});
      begin = range.end;
    }
  }

  // Waits until there is room for it.
  void Put(Batch batch) {
    const MutexLock lock(mu_);
    while (ready_.size() >= kAhead && !stopping_ && held_.contains(batch.task.id)) changed_.Wait(mu_);
    if (!held_.contains(batch.task.id)) return;
    ready_.push_back(std::move(batch));
    changed_.SignalAll();
  }

  // What is offered.
  struct Model {
    NamedValues values;
    std::string update;
    std::string startup;
  };

  JobSpec job_;
  std::unique_ptr<Link> link_;
  Load load_;
  std::thread feeder_;
  Mutex mu_;
  CondVar changed_;
  std::deque<Batch> ready_ TY_GUARDED_BY(mu_);
  std::set<std::int64_t> held_ TY_GUARDED_BY(mu_);  // tasks
  std::shared_ptr<const Model> offer_ TY_GUARDED_BY(mu_);
  std::unique_ptr<ShardLinks> shards_ TY_GUARDED_BY(mu_);  // null: the master has the model itself
  absl::Status outcome_ TY_GUARDED_BY(mu_);
  bool stopping_ TY_GUARDED_BY(mu_) = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerTrainer>> WorkerTrainer::Connect(const WorkerOptions& options) {
  auto trainer = std::make_unique<LinkedTrainer>();
  if (absl::Status begun = trainer->Begin(options); !begun.ok()) return begun;
  return trainer;
}

}  // namespace trainyard::master
