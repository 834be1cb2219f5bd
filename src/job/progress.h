// What a job reports about its own work: its master, where it trains elastically, or the launcher of its
// scripts writes this into .status.progress of its object. Pure values, with one printer and one parser.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/document.h"

namespace trainyard::job {

// Who reports, which decides what there is to report.
enum class Reporter : std::uint8_t { kMaster, kLauncher };

enum class WorkPhase : std::uint8_t {
  kPending,
  kStarting,
  kTraining,
  kEvaluating,
  kPredicting,
  kEnding,
  kComplete,
  kRunning,
  kRestarting,
  kCancelling,
  kSucceeded,
  kCancelled,
  kFailed,
};
std::string_view Print(WorkPhase phase);  // "Pending", ...
bool IsOver(WorkPhase phase);

// In the order in which they are started and listed.
enum class MemberRole : std::uint8_t { kPs, kChief, kWorker, kEvaluator };
std::string_view Print(MemberRole role);  // "ps", "chief", "worker", "evaluator": as TF_CONFIG calls them

// One member: "worker-2".
struct MemberId {
  MemberRole role = MemberRole::kWorker;
  int index = 0;
  auto operator<=>(const MemberId&) const = default;
};
std::string Print(const MemberId& member);
std::optional<MemberId> ParseMember(std::string_view text);

struct MemberProgress {
  // Of a worker of a master, since its process came.
  std::int64_t records = 0;
  std::int64_t version = 0;    // of the model, when it last did something
  std::optional<double> rate;  // records a second
  // Of a member that runs a script.
  std::string pod;    // the uid of the pod that it is in; "": of none yet
  std::string lost;   // the uid of the pod that it lost last
  int attempt = 0;    // which run of the script it is to be in; 0: none yet
  int done = 0;       // the attempt in which its script exited 0; 0: none
  std::string state;  // for people: "running on node-1", "exited 3"
  bool operator==(const MemberProgress&) const = default;
};

// Why all scripts, or that of one member, were started again.
struct ScriptRestart {
  absl::Time time;
  int attempt = 0;  // that it led to
  std::string member;
  std::string cause;
  bool operator==(const ScriptRestart&) const = default;
};
inline constexpr std::size_t kMostScriptRestarts = 20;

// How often the agent in the master's pod has restarted the master, and why. The operator sees none of it, so
// the master itself counts, in the job's store: the count and its limit outlive the pod.
struct MasterRestarts {
  struct One {
    absl::Time time;
    std::string cause;
    bool operator==(const One&) const = default;
  };
  std::int64_t count = 0;
  int early = 0;          // in a row, without a step in between
  std::vector<One> last;  // the newest at the end; bounded
  bool operator==(const MasterRestarts&) const = default;
};
Object Print(const MasterRestarts& restarts);
// What cannot be read counts as nothing.
MasterRestarts ParseMasterRestarts(const Document& document);

struct Metric {
  std::string name;
  double value = 0;
  bool operator==(const Metric&) const = default;
};

// The attempts of pods by group and index: {"worker": {0: 2}}.
using GroupAttempts = std::map<std::string, std::map<int, int>, std::less<>>;

struct Progress {
  Reporter reporter = Reporter::kMaster;
  WorkPhase phase = WorkPhase::kPending;
  std::string reason;   // one sentence: of a failure, or what scripts wait for, or how they ended
  std::string waiting;  // for whom or what the work waits, if for any
  std::map<MemberId, MemberProgress> members;

  // ---- Of a master

  std::int64_t epoch = 0;
  std::int64_t epochs = 0;
  std::int64_t records = 0;  // done in this epoch
  std::int64_t epoch_records = 0;
  std::int64_t total_records = 0;  // done in all
  std::int64_t version = 0;
  std::optional<double> rate;  // records a second
  std::optional<double> loss;  // the mean of the last ones; not finite: the last one
  std::int64_t nonfinite = 0;  // how often a loss or a variable became NaN or infinite, and the job went on
  std::string last_nonfinite;
  std::vector<Metric> metrics;
  std::int64_t evaluated = -1;  // the version that the metrics are of
  int workers = 0;              // that are connected
  int pservers = 0;             // likewise
  std::string checkpoint;       // the last one
  // The last attempts whose failures do not count any more: failures in a row are counted from there.
  GroupAttempts settled;
  MasterRestarts master_restarts;

  // ---- Of a launcher

  int attempt = 1;                       // of all scripts
  int restarts = 0;                      // that count against the limit
  int running = 0;                       // members whose script runs or has exited 0
  std::vector<MemberId> present;         // who is in this attempt; empty: that is not decided yet
  absl::Time since = absl::UnixEpoch();  // when this attempt began to be prepared
  std::optional<absl::Time> started;     // when all ran first
  std::optional<absl::Time> ended;
  std::vector<ScriptRestart> history;  // the newest ones, oldest first

  bool operator==(const Progress&) const = default;
};

Document PrintProgress(const Progress& progress);
// What cannot be understood is left out.
Progress ParseProgress(Reporter reporter, const Document& document);

// "epoch 2/5, loss 0.2107", "Running, attempt 2": one short line.
std::string Summarize(const Progress& progress);

}  // namespace trainyard::job
