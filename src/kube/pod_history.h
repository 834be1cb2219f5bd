// What is kept of a job's pods that are gone: who it was, how it ended, why, and the end of its log. Kept in
// a ConfigMap that goes with the job, and bounded: the oldest go first, and of a log the first lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/document.h"
#include "base/mutex.h"
#include "kube/api.h"
#include "kube/lru_map.h"
#include "kube/pod.h"

namespace trainyard::kube {

struct GonePod {
  std::string pod;
  std::string uid;
  std::string member;  // "worker-1"
  std::string node;
  std::string cause;             // for people: "exited 1 on node-0: it was to be restarted"
  std::optional<int> exit_code;  // of the container that does the work
  int signal = 0;
  std::string reason;  // "OOMKilled", "Evicted"
  absl::Time began = absl::InfinitePast();
  absl::Time ended = absl::InfinitePast();
  std::string log;        // its last lines
  bool cut = false;       // there were more
  bool finished = false;  // it had ended when this was read; not stored
  bool operator==(const GonePod&) const = default;
};

// The ConfigMap of a job's history: "mnist.tfjob.history". Jobs of several kinds may have one name.
std::string HistoryName(std::string_view kind, std::string_view job);

// Which history a pod belongs to.
struct HistoryOwner {
  std::string ns;
  std::string kind;    // "tfjob", in small letters
  std::string job;     // its name
  Document reference;  // an ownerReference: the history goes with that object
};

struct HistoryLimits {
  std::size_t pods = 200;
  std::size_t bytes_per_log = std::size_t{16} << 10;
  std::size_t bytes = std::size_t{700} << 10;  // of all logs, as they are stored
};

// The last lines of a text that fit into so many bytes: whole ones, unless one alone does not.
std::string LastLines(std::string_view text, std::size_t most_bytes, bool* cut = nullptr);

// ---- The ConfigMap, pure

// In the order in which they went. What cannot be read is left out.
std::vector<GonePod> ParseHistory(const Document& config_map);
// The history with these added, or in the place of what was known of the same pods; `present` may be null.
Document AddToHistory(const Document* present, const HistoryOwner& owner, std::vector<GonePod> gone,
                      const HistoryLimits& limits = {});

// ---- Keeping it

// A pod that goes.
struct Leaving {
  const CompactPod* pod = nullptr;
  std::string member;
  std::string container;  // that does the work; "": the only one
  std::string why;        // it goes
  bool lost = false;      // with its node: nobody can be asked for its log
};

// All calls from many threads.
class PodHistory {
 public:
  // The transport and the clock outlive it.
  PodHistory(Transport& transport, Clock& clock, HistoryLimits limits = {});

  // Reads the ends of their logs, all at once, while they are still there. What cannot be read within a
  // moment stays empty: nobody's restart waits for it. A pod is collected when it first is among them, and
  // again when it has ended.
  std::vector<GonePod> Collect(const std::vector<Leaving>& pods);
  // Adds them to the job's history.
  absl::Status Store(const HistoryOwner& owner, const std::vector<GonePod>& gone);

 private:
  enum class Known : std::uint8_t { kNothing, kThatItGoes, kHowItEnded };
  // Whether there is more to know of the pod than is known already.
  bool IsNews(const CompactPod& pod);
  void Learn(const std::vector<GonePod>& gone);

  Clock& clock_;
  const HistoryLimits limits_;
  Api api_;
  Mutex mu_;
  LruMap<Known> known_ TY_GUARDED_BY(mu_);  // by the pods' uids
};

// The history of the job of that uid; empty if it has none.
absl::StatusOr<std::vector<GonePod>> ReadHistory(Api& api, std::string_view ns, std::string_view kind,
                                                 std::string_view job, std::string_view uid);

}  // namespace trainyard::kube
