// What the commands about jobs share: which cluster, which namespace, and which job.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
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

// Where an answer is shown.
struct Terminal {
  bool is_one = false;
  std::size_t width = 80;
  bool colours = false;  // one that wants them: NO_COLOR is not set
};
Terminal TerminalAt(int fd);

}  // namespace trainyard::cli
