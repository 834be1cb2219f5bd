#include "node/heartbeats.h"

#include <sys/resource.h>

#include <vector>

#include "base/ids.h"
#include "base/log.h"
#include "base/status.h"
#include "node/node_objects.h"

namespace trainyard::node {

// A heartbeat that fails is not repeated: the next one says more.
Heartbeats::Heartbeats(kube::Transport& transport, Clock& clock, const Options& options)
    : api_(transport, clock, IdSource::Random(), {.attempts = 1}),
      clock_(clock),
      options_(options),
      alarm_(clock.NewAlarm()),
      thread_([this] { Run(); }) {}

void Heartbeats::StartNode(const std::string& node) {
  {
    MutexLock lock(mu_);
    if (!nodes_.insert(node).second) return;
  }
  alarm_->Notify();
}

void Heartbeats::StopNode(const std::string& node) {
  MutexLock lock(mu_);
  nodes_.erase(node);
}

void Heartbeats::End() {
  {
    MutexLock lock(mu_);
    ending_ = true;
  }
  alarm_->Notify();
  if (thread_.joinable()) thread_.join();
}

void Heartbeats::Run() {
  // The thread runs ahead of pods that use all processors. Without the permission it runs as all others do.
  (void)::setpriority(PRIO_PROCESS, 0, -10);
  while (true) {
    const SteadyTime next = clock_.Steady() + options_.interval;
    std::vector<kube::Operation> renewals;
    {
      MutexLock lock(mu_);
      if (ending_) return;
      for (const std::string& node : nodes_) {
        renewals.push_back(kube::PatchOperation(
            kube::Resource::Leases(), {.ns = "kube-node-lease", .name = node},
            PrintJson(MakeLease(node, options_.lease, clock_.Now())),
            {.type = kube::PatchType::kApply, .field_manager = "trainyard", .force = true}));
      }
    }
    for (const auto& renewed : api_.Do(std::move(renewals))) {
      if (!renewed.ok()) log::Debug("heartbeat failed", {{"error", Message(renewed.status())}});
    }
    alarm_->WaitUntil(next);
  }
}

}  // namespace trainyard::node
