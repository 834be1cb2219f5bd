// Jobs as people see them: one form for every kind that Trainyard runs, made from what the API server has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/document.h"
#include "job/job_status.h"
#include "job/progress.h"
#include "job/status_document.h"
#include "kube/node.h"
#include "kube/pod.h"
#include "kube/pod_history.h"
#include "kube/resource.h"

namespace trainyard::view {

enum class Kind : std::uint8_t { kTfJob, kPyTorchJob, kAiTrainingJob, kElastic, kTask };
inline constexpr Kind kKinds[] = {Kind::kTfJob, Kind::kPyTorchJob, Kind::kAiTrainingJob, Kind::kElastic,
                                  Kind::kTask};

// What a kind is called and where it is kept.
struct KindFacts {
  Kind kind;
  std::string_view name;                  // as users type it: "tfjob"
  std::vector<std::string_view> others;   // "tfjobs", "tfj"
  std::string_view history;               // in the name of its history (kube/pod_history.h)
  job::StatusSpelling status;             // how its status is spelled
  std::optional<job::Reporter> reporter;  // who reports the progress of its work, if anybody
  kube::Resource resource;                // of the object that is the job
  std::string_view roles;                 // the member of its spec that holds its roles
  std::string_view object_selector;       // labels of those objects, where others of the resource are none
  std::string_view object_suffix;         // behind the job's name in that object's
  std::string_view job_label;             // of pods: whose they are
  std::string_view role_label;            // and which member
  std::string_view index_label;
};
const KindFacts& FactsOf(Kind kind);
// By any of its names, in any letter case.
std::optional<Kind> ParseKind(std::string_view name);

// A job by what its own object says.
struct Job {
  Kind kind = Kind::kTfJob;
  std::string ns;
  std::string name;
  std::string uid;
  std::optional<job::State> state;  // as the operator says; nothing: no operator has looked at it yet
  std::string shown;                // for people: "Running", or what its work does: "Training"; "": no state
  std::string reason;               // in one word: "BackoffLimitExceeded"
  std::string message;              // in a sentence
  // An edit of its spec that is not valid; the job continues with the spec before it.
  std::string spec_problem;
  int ready = 0;   // pods that run or are done
  int wanted = 0;  // of so many
  std::int64_t restarts = 0;
  absl::Time created = absl::InfinitePast();
  absl::Time started = absl::InfinitePast();
  absl::Time ended = absl::InfinitePast();
  absl::Time changed = absl::InfinitePast();  // since when it is in its state
  bool over = false;
  bool succeeded = false;
  std::string last_cause;                                     // of the last restart
  std::vector<std::pair<std::string, std::string>> progress;  // "epoch": "2/10", for people
  std::vector<std::pair<std::string, std::string>> spec;      // "image": "x", for people
  Document object;                                            // as the server has it
  std::optional<job::Progress> reported;                      // what its master or launcher reports

  std::string Id() const;  // "tfjob/mnist"
};

// One place in a job, and the pod in it.
struct Member {
  std::string name;  // "worker-1"
  std::string pod;
  std::string uid;
  std::string node;
  std::string state;  // "Running", "Pending", "ImagePullBackOff", "Completed", "Ended", ...
  std::string why;    // it does not run: in a sentence; "": it does
  std::int64_t restarts = 0;
  bool runs = false;
  bool waits = false;  // it is to run and does not
  bool gang = false;   // it starts together with others, or not at all
  absl::Time created = absl::InfinitePast();
  absl::Time since = absl::InfinitePast();  // it is in this state
  std::string container;                    // that does the work
  bool has_previous = false;                // a container before the present one has left a log
  int exit_code = 0;                        // of one that has ended
  std::vector<kube::ResourceAmount> requests;
};

struct Event {
  std::string uid;  // of the object that it is about
  absl::Time time;
  int count = 1;
  bool warning = false;
  std::string object;  // "pod/mnist-worker-0"
  std::string reason;
  std::string message;
};

// Why a node does not take a pod.
struct NodeRefusal {
  enum class Lack : std::uint8_t { kReadiness, kLabel, kRoom, kToleration, kNothing };
  Lack lack = Lack::kNothing;
  std::string text;  // "node-0 has 2 of 4 cpu free, and it asks for 3"
};

// A job with all that is known of it.
struct JobPage {
  Job job;
  std::vector<Member> members;         // in the order of their names, the newest pod of each
  std::vector<kube::GonePod> history;  // pods that are gone, or were followed by others
  std::vector<Event> events;           // the oldest first
  std::vector<NodeRefusal> why_nodes;  // of a member that finds no node
};

// "worker-2" before "worker-10".
bool NameLess(std::string_view a, std::string_view b);

}  // namespace trainyard::view
