#include "operator/metered_transport.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace trainyard::ops {

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
