#include "kube/leader_election.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::kube {

std::string MakeIdentity(IdSource& ids) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return StrCat(host.data(), "_", ids.Uuid());
}

LeaderElector::LeaderElector(Api& api, Clock& clock, IdSource random, Options options, Callbacks callbacks)
    : api_(api),
      clock_(clock),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      call_alarm_(clock.NewAlarm()),
      tell_alarm_(clock.NewAlarm()),
      object_(NewLeaseObject(options_.lease)),
      election_(options_.election, std::move(random)) {}

LeaderElector::~LeaderElector() { Stop(); }

bool LeaderElector::IsLeader() const {
  MutexLock lock(mu_);
  return election_.IsLeading(clock_.Steady());
}

std::string LeaderElector::Holder() const {
  MutexLock lock(mu_);
  return election_.holder();
}

void LeaderElector::Start() {
  TY_CHECK(!caller_.joinable(), "an elector starts once");
  caller_ = std::thread([this] { RunCalls(); });
  teller_ = std::thread([this] { RunTelling(); });
}

void LeaderElector::Stop() {
  {
    MutexLock lock(mu_);
    if (std::exchange(stopping_, true)) return;
    election_.Resign(clock_.Steady());
  }
  call_alarm_->Notify();
  tell_alarm_->Notify();
  if (teller_.joinable()) teller_.join();
  TellOnce();
  if (caller_.joinable()) caller_.join();
  Release();
}

SteadyTime LeaderElector::Step() {
  CallOnce();
  while (TellOnce()) {
  }
  MutexLock lock(mu_);
  const SteadyTime now = clock_.Steady();
  return election_.IsLeading(now) ? std::min(election_.NextTime(), election_.leading_until())
                                  : election_.NextTime();
}

// ---- calling

void LeaderElector::RunCalls() {
  while (true) {
    if (CallOnce()) continue;
    SteadyTime next;
    {
      MutexLock lock(mu_);
      if (stopping_) return;
      next = election_.NextTime();
    }
    call_alarm_->WaitUntil(next);
  }
}

bool LeaderElector::CallOnce() {
  std::optional<LeaseCall> call;
  {
    MutexLock lock(mu_);
    call = election_.NextCall(clock_.Steady(), clock_.Now());
  }
  if (!call) return false;
  const absl::StatusOr<SeenLease> answer = Do(*call);
  const bool missing = kube::IsNotFound(answer.status()) && !std::holds_alternative<CreateLease>(*call);
  if (!answer.ok() && !missing && !kube::IsConflict(answer.status()) &&
      !kube::IsAlreadyExists(answer.status())) {
    log::Warn("cannot reach the leader lease",
              {{"lease", options_.lease.Str()}, {"error", Message(answer.status())}});
  }
  std::string holder;
  {
    MutexLock lock(mu_);
    const std::string before = election_.holder();
    election_.Answered(answer, clock_.Steady());
    if (election_.holder() != before) holder = election_.holder();
  }
  if (!holder.empty()) log::Info("leader", {{"lease", options_.lease.Str()}, {"holder", holder}});
  tell_alarm_->Notify();
  return true;
}

Operation LeaderElector::ToOperation(const LeaseCall& call) const {
  if (const auto* create = std::get_if<CreateLease>(&call)) {
    return CreateOperation(Resource::Leases(), options_.lease.ns,
                           PrintLease(NewLeaseObject(options_.lease), create->record));
  }
  if (const auto* update = std::get_if<UpdateLease>(&call)) {
    Document object = object_;
    MakeObjectAt(object, {"metadata"})["resourceVersion"] = update->version;
    return UpdateOperation(Resource::Leases(), options_.lease, PrintLease(std::move(object), update->record));
  }
  return GetOperation(Resource::Leases(), options_.lease);
}

absl::StatusOr<SeenLease> LeaderElector::Do(const LeaseCall& call) {
  Operation operation = ToOperation(call);
  // A call that hangs must leave time for another before the deadline.
  operation.request.timeout = options_.election.renew_deadline / 2;
  TY_ASSIGN_OR_RETURN(const std::string json, api_.Do(std::move(operation)));
  TY_ASSIGN_OR_RETURN(Lease lease, ParseLease(json));
  object_ = std::move(lease.object);
  return SeenLease{.record = std::move(lease.record), .version = std::move(lease.resource_version)};
}

// ---- telling

void LeaderElector::RunTelling() {
  while (true) {
    if (TellOnce()) continue;
    SteadyTime until = SteadyTime::Never();
    {
      MutexLock lock(mu_);
      if (stopping_) return;
      const SteadyTime now = clock_.Steady();
      if (election_.IsLeading(now)) until = election_.leading_until();
    }
    tell_alarm_->WaitUntil(until);
  }
}

bool LeaderElector::TellOnce() {
  std::int64_t term = 0;
  {
    MutexLock lock(mu_);
    if (election_.IsLeading(clock_.Steady())) term = election_.term();
  }
  if (term == told_term_) return false;
  // From one term to another there was a time in which somebody else may have led.
  const bool stops = told_term_ != 0;
  log::Info(stops ? "stopped leading" : "leading", {{"lease", options_.lease.Str()},
                                                    {"identity", options_.election.identity},
                                                    {"term", stops ? told_term_ : term}});
  told_term_ = stops ? 0 : term;
  if (stops) {
    if (callbacks_.on_stopped != nullptr) callbacks_.on_stopped();
  } else if (callbacks_.on_started != nullptr) {
    callbacks_.on_started(term);
  }
  return true;
}

// ---- the end

void LeaderElector::Release() {
  // A renewal whose answer was lost has changed the version: then once more with the one that is read.
  for (int attempt = 0; attempt < 2; ++attempt) {
    std::optional<UpdateLease> call;
    {
      MutexLock lock(mu_);
      call = election_.ReleaseCall(clock_.Now());
    }
    if (!call) return;
    const absl::StatusOr<SeenLease> released = Do(*call);
    if (released.ok()) return;
    const absl::StatusOr<SeenLease> lease =
        kube::IsConflict(released.status()) ? Do(ReadLease{}) : released.status();
    if (!lease.ok()) {
      log::Warn("the leader lease is not given away; it ends by itself",
                {{"lease", options_.lease.Str()}, {"error", Message(lease.status())}});
      return;
    }
    MutexLock lock(mu_);
    election_.See(*lease, clock_.Steady());
  }
}

}  // namespace trainyard::kube
