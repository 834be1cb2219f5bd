#include "node/end_pods.h"

#include <signal.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "node/cgroups.h"
#include "node/loop.h"
#include "node/pod_folder.h"
#include "node/shim_client.h"

namespace trainyard::node {
namespace {

constexpr absl::Duration kShimEnds = absl::Seconds(10);

// One pod on its way out.
struct Ending {
  std::string uid;
  std::set<std::string> running;  // runs that have not ended
  std::unique_ptr<ShimClient> shim;
  bool gone = false;
};

// The runs that began and did not end, by the state file.
std::set<std::string> RunningOf(const PodFolder& folder) {
  std::set<std::string> running;
  for (const StateEvent& event : ReadState(folder)) {
    switch (event.kind) {
      case StateEvent::Kind::kStarted:
        running.insert(event.id);
        break;
      case StateEvent::Kind::kFailed:
      case StateEvent::Kind::kExited:
        running.erase(event.id);
        break;
      case StateEvent::Kind::kShim:  // one that began later knows nothing of the runs before it
        running.clear();
        break;
    }
  }
  return running;
}

// Turns the loop until the condition holds or the time is over; false: the time was over first.
bool TurnUntil(Loop& loop, absl::Duration limit, const std::function<bool()>& condition) {
  const SteadyTime deadline = Clock::System().Steady() + limit;
  while (!condition()) {
    if (Clock::System().Steady() >= deadline) return false;
    loop.Turn(deadline - Clock::System().Steady());
  }
  return true;
}

std::vector<std::unique_ptr<Ending>> ConnectAll(Loop& loop, const std::string& home) {
  std::vector<std::unique_ptr<Ending>> pods;
  for (const std::string& uid : ListPodFolders(home)) {
    const PodFolder folder(home, uid);
    auto pod = std::make_unique<Ending>();
    pod->uid = uid;
    auto shim = ShimClient::Connect(loop, folder,
                                    {.event =
                                         [raw = pod.get()](const StateEvent& event) {
                                           if (event.kind == StateEvent::Kind::kExited)
                                             raw->running.erase(event.id);
                                         },
                                     .gone = [raw = pod.get()] { raw->gone = true; }});
    if (!shim.ok()) continue;  // it ended with the machine or by itself
    pod->shim = *std::move(shim);
    pod->running = RunningOf(folder);
    pods.push_back(std::move(pod));
  }
  return pods;
}

}  // namespace

int CountPods(const std::string& home) {
  auto loop = Loop::Make(Clock::System());
  return loop.ok() ? static_cast<int>(ConnectAll(**loop, home).size()) : 0;
}

absl::Status EndPods(const std::string& home, absl::Duration grace) {
  TY_ASSIGN_OR_RETURN(const auto loop, Loop::Make(Clock::System()));
  const auto pods = ConnectAll(*loop, home);
  for (const auto& pod : pods) {
    if (pod->running.empty()) continue;
    // What its processes make of a signal is not how the pod has ended.
    TY_RETURN_IF_ERROR(ReplaceFile(PodFolder(home, pod->uid).EndedMark(), "", 0600, Durability::kProcess));
    for (const std::string& run : pod->running) pod->shim->Signal(run, SIGTERM);
  }
  const auto all_of = [&](auto holds) {
    for (const auto& pod : pods) {
      if (!holds(*pod)) return false;
    }
    return true;
  };
  TurnUntil(*loop, grace,
            [&] { return all_of([](const Ending& pod) { return pod.gone || pod.running.empty(); }); });
  for (const auto& pod : pods) {
    if (!pod->gone) pod->shim->Shutdown();
  }
  if (TurnUntil(*loop, kShimEnds, [&] { return all_of([](const Ending& pod) { return pod.gone; }); })) {
    Cgroups::OfHome(home).RemoveAll();
    return absl::OkStatus();
  }
  std::string left;
  for (const auto& pod : pods) {
    if (!pod->gone) StrAppend(left, left.empty() ? "" : ", ", pod->uid);
  }
  return absl::DeadlineExceededError(
      StrCat("these pods do not end: ", left, "; look into ", PodsFolder(home)));
}

}  // namespace trainyard::node
