#include "cli/jobs_common.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/curl_transport.h"

namespace trainyard::cli {

JobsClient::JobsClient(std::string ns, std::unique_ptr<kube::Transport> transport, std::string where)
    : ns_(std::move(ns)),
      where_(std::move(where)),
      transport_(std::move(transport)),
      api_(*transport_, Clock::System(), IdSource::Random(), {.attempts = 2}) {}

void JobsFlags::Declare(Flags& flags) {
  flags.Text({.name = "-n,--namespace", .value = "NAME", .help = "Where the jobs are (the current one)"},
             ns_);
  kube_.Declare(flags);
}

absl::StatusOr<std::unique_ptr<JobsClient>> JobsFlags::Connect() const {
  TY_ASSIGN_OR_RETURN(kube::ClusterConfig config, kube_.Load());
  std::string ns = ns_.empty() ? config.ns : ns_;
  std::string where = config.server;
  TY_ASSIGN_OR_RETURN(auto transport, kube::NewCurlTransport(std::move(config)));
  return std::make_unique<JobsClient>(std::move(ns), std::move(transport), std::move(where));
}

std::vector<std::string> JobsFlags::ListNames() const {
  std::vector<std::string> names;
  const auto client = Connect();
  if (!client.ok()) return names;
  const auto jobs = view::ListJobs((*client)->api(), {.ns = (*client)->ns()});
  if (!jobs.ok()) return names;
  for (const view::Job& job : *jobs) {
    names.push_back(job.name);
    names.push_back(job.Id());
  }
  return names;
}

absl::StatusOr<view::Job> FindNamed(JobsClient& client, const std::string& text) {
  const auto name = view::ParseJobName(text);
  if (!name.ok()) return UsageError(Message(name.status()));
  auto job = view::FindJob(client.api(), client.ns(), *name);
  if (job.ok() || absl::IsNotFound(job.status()) || absl::IsInvalidArgument(job.status())) return job;
  return Annotate(job.status(), client.where());
}

Terminal TerminalAt(int fd) {
  Terminal terminal{.is_one = ::isatty(fd) == 1};
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) terminal.width = size.ws_col;
  const char* const none = std::getenv("NO_COLOR");
  terminal.colours = terminal.is_one && (none == nullptr || *none == '\0');
  return terminal;
}

}  // namespace trainyard::cli
