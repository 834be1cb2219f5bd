#include "operator/metrics.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "base/mutex.h"
#include "base/text.h"

namespace trainyard::ops {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Histogram;

const Histogram::BucketBoundaries& Seconds() {
  static const auto* const boundaries =
      new Histogram::BucketBoundaries{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30};
  return *boundaries;
}

prometheus::Counter& OneCounter(prometheus::Registry& registry, const std::string& name,
                                const std::string& help) {
  return BuildCounter().Name(name).Help(help).Register(registry).Add({});
}
Histogram& OneHistogram(prometheus::Registry& registry, const std::string& name, const std::string& help) {
  return BuildHistogram().Name(name).Help(help).Register(registry).Add({}, Seconds());
}

}  // namespace

struct Metrics::Parts {
  mutable prometheus::Registry registry;
  prometheus::Counter& pods_created =
      OneCounter(registry, "trainyard_pods_created_total", "Pods that were made");
  prometheus::Counter& pods_deleted =
      OneCounter(registry, "trainyard_pods_deleted_total", "Pods that were deleted");
  prometheus::Counter& services_created =
      OneCounter(registry, "trainyard_services_created_total", "Services that were made");
  prometheus::Counter& services_deleted =
      OneCounter(registry, "trainyard_services_deleted_total", "Services that were deleted");
  prometheus::Family<prometheus::Counter>& restarts =
      BuildCounter()
          .Name("trainyard_restarts_total")
          .Help("Pods and containers that failed and were started again")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& requests =
      BuildCounter()
          .Name("trainyard_api_requests_total")
          .Help("Requests to the API server by the code of their answer; 0: none came")
          .Register(registry);
  Histogram& plan_seconds =
      OneHistogram(registry, "trainyard_plan_seconds", "How long it took to make a plan");
  Histogram& pass_seconds =
      OneHistogram(registry, "trainyard_pass_seconds", "How long a pass over one job took");
  Histogram& queue_seconds = OneHistogram(registry, "trainyard_queue_wait_seconds",
                                          "How long a job was ready before its pass began");
  prometheus::Counter& failed_passes =
      OneCounter(registry, "trainyard_failed_passes_total", "Passes that are tried again");
  prometheus::Family<prometheus::Gauge>& jobs =
      BuildGauge().Name("trainyard_jobs").Help("Jobs by kind and state").Register(registry);
  prometheus::Family<prometheus::Gauge>& queue =
      BuildGauge().Name("trainyard_queue_depth").Help("Jobs in the queue").Register(registry);
  prometheus::Gauge& leading =
      BuildGauge().Name("trainyard_leading").Help("1 if this process leads").Register(registry).Add({});

  Mutex mu;
  std::vector<std::pair<std::string, CountJobs>> count_jobs TY_GUARDED_BY(mu);
  std::function<kube::WorkQueue::Counts()> count_queue TY_GUARDED_BY(mu);
  std::function<bool()> leads TY_GUARDED_BY(mu);

  void Ask() {
    MutexLock lock(mu);
    for (const auto& [kind, count] : count_jobs) {
      for (const auto& [state, number] : count()) jobs.Add({{"kind", kind}, {"state", state}}).Set(number);
    }
    if (count_queue) {
      const kube::WorkQueue::Counts counts = count_queue();
      queue.Add({{"what", "ready"}}).Set(static_cast<double>(counts.ready));
      queue.Add({{"what", "later"}}).Set(static_cast<double>(counts.later));
      queue.Add({{"what", "running"}}).Set(static_cast<double>(counts.running));
    }
    if (leads) leading.Set(leads() ? 1 : 0);
  }
};

Metrics::Metrics() : parts_(std::make_unique<Parts>()) {}
Metrics::~Metrics() = default;

void Metrics::PodsCreated(int count) { parts_->pods_created.Increment(count); }
void Metrics::PodsDeleted(int count) { parts_->pods_deleted.Increment(count); }
void Metrics::ServicesCreated(int count) { parts_->services_created.Increment(count); }
void Metrics::ServicesDeleted(int count) { parts_->services_deleted.Increment(count); }
void Metrics::Restarted(std::string_view role, std::string_view cause) {
  parts_->restarts.Add({{"role", std::string(role)}, {"cause", std::string(cause)}}).Increment();
}
void Metrics::Planned(absl::Duration took) { parts_->plan_seconds.Observe(absl::ToDoubleSeconds(took)); }
void Metrics::Passed(absl::Duration took, bool failed) {
  parts_->pass_seconds.Observe(absl::ToDoubleSeconds(took));
  if (failed) parts_->failed_passes.Increment();
}
void Metrics::Waited(absl::Duration time) { parts_->queue_seconds.Observe(absl::ToDoubleSeconds(time)); }
void Metrics::Requested(std::string_view method, int code) {
  parts_->requests.Add({{"method", std::string(method)}, {"code", StrCat(code)}}).Increment();
}

void Metrics::WatchJobs(std::string kind, CountJobs count) {
  MutexLock lock(parts_->mu);
  parts_->count_jobs.emplace_back(std::move(kind), std::move(count));
}
void Metrics::WatchQueue(std::function<kube::WorkQueue::Counts()> count) {
  MutexLock lock(parts_->mu);
  parts_->count_queue = std::move(count);
}
void Metrics::WatchLeading(std::function<bool()> leads) {
  MutexLock lock(parts_->mu);
  parts_->leads = std::move(leads);
}
void Metrics::ForgetWatched() {
  MutexLock lock(parts_->mu);
  parts_->count_jobs.clear();
  parts_->count_queue = nullptr;
  parts_->leads = nullptr;
}

std::string Metrics::Print() const {
  parts_->Ask();
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, parts_->registry.Collect());
  return out.str();
}

MeteredTransport::MeteredTransport(kube::Transport& to, Clock& clock, Metrics& metrics, double qps)
    : to_(to),
      clock_(clock),
      metrics_(metrics),
      qps_(qps),
      allowance_(std::max(qps, 1.0)),
      refilled_(clock.Steady()) {}

std::vector<absl::StatusOr<kube::Response>> MeteredTransport::DoAll(std::vector<kube::Request> requests) {
  std::vector<std::string> methods;
  methods.reserve(requests.size());
  for (const kube::Request& request : requests) methods.push_back(request.method);
  std::vector<absl::StatusOr<kube::Response>> answers;
  if (qps_ <= 0) {
    answers = to_.DoAll(std::move(requests));
  } else {
    for (auto at = requests.begin(); at != requests.end();) {
      const auto end = at + static_cast<std::ptrdiff_t>(Admit(static_cast<std::size_t>(requests.end() - at)));
      auto some = to_.DoAll({std::make_move_iterator(at), std::make_move_iterator(end)});
      std::ranges::move(some, std::back_inserter(answers));
      at = end;
    }
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    metrics_.Requested(methods[i], answers[i].ok() ? answers[i]->code : 0);
  }
  return answers;
}

absl::StatusOr<kube::OpenedResponse> MeteredTransport::Open(kube::Request request) {
  if (qps_ > 0) Admit(1);
  auto answer = to_.Open(std::move(request));
  metrics_.Requested("WATCH", answer.ok() ? answer->head.code : 0);
  return answer;
}

std::size_t MeteredTransport::Admit(std::size_t wanted) {
  for (;;) {
    absl::Duration wait;
    {
      MutexLock lock(mu_);
      const SteadyTime now = clock_.Steady();
      allowance_ = std::min(allowance_ + absl::ToDoubleSeconds(now - refilled_) * qps_, std::max(qps_, 1.0));
      refilled_ = now;
      if (allowance_ >= 1) {
        const std::size_t admitted = std::min(wanted, static_cast<std::size_t>(allowance_));
        allowance_ -= static_cast<double>(admitted);
        return admitted;
      }
      wait = absl::Seconds((1 - allowance_) / qps_);
    }
    clock_.NewAlarm()->WaitUntil(clock_.Steady() + wait);
  }
}

}  // namespace trainyard::ops
