// What the agents of pods say, kept up to date: one long poll for each of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"
#include "http/calls.h"
#include "kube/resource.h"
#include "launch/plan.h"

namespace trainyard::launch {

// An agent's status as it prints it; InvalidArgument: it is none.
struct AgentStatus {
  SeenAgent seen;
  std::string incarnation;
  std::int64_t version = 0;
};
absl::StatusOr<AgentStatus> ParseAgentStatus(std::string_view json);

// Where an agent is.
struct AgentPlace {
  std::string pod_uid;
  std::string ip;
  std::string token;
  kube::ObjectKey task;  // whose it is

  std::string Url(std::string_view path) const;
};

// All from any thread.
class AgentWatch {
 public:
  // `changed` is told of a task when one of its agents has something to say; on the thread of the calls. The
  // calls and the clock outlive it.
  AgentWatch(http::Calls& calls, Clock& clock, std::function<void(const kube::ObjectKey& task)> changed);
  ~AgentWatch();

  // Begins to listen to it; nothing, if that has begun.
  void Watch(const AgentPlace& place);
  void Forget(const std::string& pod_uid);
  // It has ended: what it said last is kept, and it is not asked any more.
  void Rest(const std::string& pod_uid);
  // Nothing: it has never answered.
  std::optional<SeenAgent> Find(const std::string& pod_uid) const;
  // Since when it is listened to.
  std::optional<absl::Time> AskedSince(const std::string& pod_uid) const;
  // What it answered to a call; whether that is news.
  bool Take(const std::string& pod_uid, const AgentStatus& status);

 private:
  struct Agent {
    AgentPlace place;
    std::optional<AgentStatus> status;
    http::Calls::Id call = 0;
    int failures = 0;  // in a row
    absl::Time since;  // when it was asked first
    bool rests = false;
  };
  // What a call that has been forgotten asks for.
  struct Shared;

  static bool Learn(Agent& agent, const AgentStatus& status);
  void Ask(const std::string& pod_uid);
  void OnAnswer(const std::string& pod_uid, const absl::StatusOr<http::Answer>& answer);

  http::Calls& calls_;
  Clock& clock_;
  const std::function<void(const kube::ObjectKey& task)> changed_;
  std::shared_ptr<Shared> shared_;
  mutable Mutex mu_;
  std::map<std::string, Agent> agents_ TY_GUARDED_BY(mu_);  // by the pod's uid
};

}  // namespace trainyard::launch
