// What the commands about jobs share: which cluster, which namespace, and which job.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "cli/command.h"
#include "cli/kube_common.h"
#include "kube/api.h"
#include "view/job.h"
#include "view/reader.h"

namespace trainyard::cli {

// A cluster that jobs are looked for in.
class JobsClient {
 public:
  JobsClient(std::string ns, std::unique_ptr<kube::Transport> transport, std::string where);
  kube::Api& api() { return api_; }
  kube::Transport& transport() { return *transport_; }
  const std::string& ns() const { return ns_; }
  // The server's address, for whoever could be surprised.
  const std::string& where() const { return where_; }

 private:
  const std::string ns_;
  const std::string where_;
  const std::unique_ptr<kube::Transport> transport_;
  kube::Api api_;
};

class JobsFlags {
 public:
  void Declare(Flags& flags);
  absl::StatusOr<std::unique_ptr<JobsClient>> Connect() const;
  // "tfjob/mnist" of every job of the namespace, for a shell that completes names; none if nobody answers.
  std::vector<std::string> ListNames() const;

 private:
  std::string ns_;
  KubeFlags kube_;
};

// The job that a user names. A name that is none is misuse.
absl::StatusOr<view::Job> FindNamed(JobsClient& client, const std::string& text);

struct JobTableOptions {
  bool all_namespaces = false;
  bool wide = false;
};
std::string JobTable(const std::vector<view::Job>& jobs, const JobTableOptions& options);

// Where an answer is shown.
struct Terminal {
  bool is_one = false;
  std::size_t width = 80;
  bool colours = false;  // one that wants them: NO_COLOR is not set
};
Terminal TerminalAt(int fd);

// ---- Lines of many members on standard output: each with its member before it, in a colour of its own where
// there are any.

// Whole lines of a text that comes in pieces.
class LineSplitter {
 public:
  template <typename Take>
  void Add(std::string_view piece, const Take& take) {
    for (const char c : piece) {
      rest_ += c;
      if (c != '\n') continue;
      take(std::string_view(rest_).substr(0, rest_.size() - 1));
      rest_.clear();
    }
  }
  // What has no end yet.
  const std::string& rest() const { return rest_; }

 private:
  std::string rest_;
};

// All calls from any thread.
class LinePrinter {
 public:
  LinePrinter();
  // "[worker-0] line". False: nobody reads any more.
  bool Print(std::string_view member, std::string_view line);
  // The same of a line that has its member already; one that has none is printed as it is.
  bool Print(std::string_view line);
  bool broken() const;

 private:
  const bool colours_;
  mutable Mutex mu_;
  std::map<std::string, std::size_t, std::less<>> known_ TY_GUARDED_BY(mu_);
};

}  // namespace trainyard::cli
