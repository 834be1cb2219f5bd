// Launched tasks of a simulation: the real controller of the launcher, and in each pod an agent whose
// decisions are the real agent's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "agent/attempts.h"
#include "agent/status.h"
#include "base/document.h"
#include "base/ids.h"
#include "http/calls.h"
#include "launch/controller.h"
#include "tests/sim/cluster.h"
#include "tests/sim/faulty_transport.h"
#include "tests/sim/promises.h"

namespace trainyard::sim {

// The agents in the pods, and the way to them.
class Agents final : public http::Calls {
 public:
  Agents(Cluster& cluster, Promises& promises, std::uint64_t seed)
      : cluster_(cluster), promises_(promises), random_(seed) {}

  Id Begin(http::Call call, Done done) override;
  Id Follow(http::Call call, Some some, Done done) override;
  void Cancel(Id id) override { polls_.erase(id); }

  // Scripts may come to their ends, agents end their pods, and long polls are answered. Calm: all that end,
  // end well and now.
  void Step(bool calm);
  // In thousandths, of calls that are lost on the way, or their answers.
  void SetLost(int thousandths) { lost_ = thousandths; }

 private:
  struct Agent {
    std::string uid;  // of its pod
    agent::Attempts attempts;
    agent::Status status;
    bool ends = false;
    std::optional<int> code;  // that it was asked to end with
  };
  struct Poll {
    http::Call call;
    Done done;
    SteadyTime begun;
  };

  // Null: nobody answers there.
  Agent* Find(const std::string& ip);
  http::Answer Handle(Agent& agent, const http::Call& call, std::string_view path);
  std::optional<absl::StatusOr<http::Answer>> Answer(const Poll& poll);
  void StepAgent(Agent& agent, const Document& pod, bool calm);
  bool Lost() { return random_.Below(1000) < static_cast<std::uint64_t>(lost_); }

  Cluster& cluster_;
  Promises& promises_;
  IdSource random_;
  int lost_ = 0;
  Id last_ = 0;
  std::map<Id, Poll> polls_;
  std::map<std::string, Agent> agents_;  // by IP
};

class Launcher {
 public:
  Launcher(Cluster& cluster, Promises& promises, std::uint64_t seed);
  ~Launcher();

  // Creates a task's objects, as the launcher does for a client.
  absl::StatusOr<Document> Create(const std::string& name);
  static bool IsTask(const Document& object);

  void SetRates(const FaultRates& rates, bool crashes);
  void Step(bool calm);
  int writes() const { return writes_; }

 private:
  void StartProcess();

  Cluster& cluster_;
  Promises& promises_;
  IdSource random_;
  Agents agents_;
  FaultRates rates_;
  bool crashes_ = true;
  int writes_ = 0;
  std::unique_ptr<FaultyTransport> transport_;
  std::unique_ptr<kube::Api> api_;
  std::unique_ptr<launch::Controller> controller_;  // null: there is no task yet
};

}  // namespace trainyard::sim
