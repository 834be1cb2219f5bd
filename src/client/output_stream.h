// What the graphs of a job put out, as it is appended, until the job is over.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kv/follower.h"
#include "kv/store.h"
#include "ps/tables.h"

namespace trainyard::client {

// One value that one graph put out in one step.
struct GraphOutput {
  std::string graph;  // "trainer-0"
  std::int64_t pass = 0;
  std::int64_t step = 0;
  absl::Time time;
  bool committed = true;  // the step counts in what is learnt
  ps::OutputValue value;
  bool operator==(const GraphOutput&) const = default;
};

// How a job stands, where the store alone cannot tell: OK: it goes on. OutOfRange: it is over. Others: it has
// failed, and why.
using JobLook = std::function<absl::Status()>;

// Used by one thread. Each committed step of each trainer comes once, also if it was undone by a roll-back
// and done again; whichever process was killed, none that the store keeps is left out.
class OutputStream {
 public:
  // Of the graphs whose ids begin with `prefix` ("trainer-"), those values that have one of the names; all if
  // there are none. `uncommitted`: also those of steps that did not count. The store must outlive it.
  struct Choice {
    std::string prefix;
    std::vector<std::string> names;
    bool uncommitted = false;
  };
  OutputStream(kv::Store& store, ps::JobKeys keys, Choice choice, JobLook look);

  // The next value. DeadlineExceeded: none came in time. OutOfRange: the job is complete, and that was all.
  // NotFound: the job is gone. Others: the job has failed, or what is stored cannot be read; the message says
  // why.
  absl::StatusOr<GraphOutput> Next(absl::Duration timeout);

 private:
  absl::Status Take(const kv::KeyValue& kv);
  absl::Status TakeAll();
  absl::Status FindEnd();
  absl::Status Failed(const ps::JobMeta& meta);

  kv::Store& store_;
  const ps::JobKeys keys_;
  const std::string range_;  // of the outputs of all those graphs
  const Choice choice_;
  const JobLook look_;
  kv::Follower follower_;
  struct Seen {
    std::int64_t sequence = -1;
    std::int64_t step = -1;
  };
  std::map<std::string, Seen, std::less<>> seen_;  // by graph
  std::deque<GraphOutput> ready_;
  absl::Status end_;  // once it is found
};

}  // namespace trainyard::client
