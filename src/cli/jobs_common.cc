#include "cli/jobs_common.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/rfc3339.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/curl_transport.h"

namespace trainyard::cli {
namespace {

std::string DurationOf(const view::Job& job, absl::Time now) {
  if (job.started == absl::InfinitePast()) return "-";
  return PrintAge((job.ended == absl::InfinitePast() ? now : job.ended) - job.started);
}

constexpr int kColours[] = {36, 33, 32, 35, 34, 31, 96, 93, 92, 95, 94, 91};

}  // namespace

std::string JobTable(const std::vector<view::Job>& jobs, const JobTableOptions& options) {
  const absl::Time now = absl::Now();
  std::vector<std::vector<std::string>> rows = {{"NAME", "STATE", "READY", "RESTARTS", "AGE"}};
  if (options.all_namespaces) rows[0].insert(rows[0].begin(), "NAMESPACE");
  if (options.wide) rows[0].insert(rows[0].end(), {"DURATION", "MESSAGE"});
  for (const view::Job& job : jobs) {
    std::vector<std::string> row = {job.Id(), job.shown.empty() ? "-" : job.shown,
                                    StrCat(job.ready, "/", job.wanted), StrCat(job.restarts),
                                    PrintAge(now - job.created)};
    if (options.all_namespaces) row.insert(row.begin(), job.ns);
    if (options.wide)
      row.insert(row.end(), {DurationOf(job, now), job.message.empty() ? job.reason : job.message});
    rows.push_back(std::move(row));
  }
  return Table(rows, 3);
}

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

LinePrinter::LinePrinter() : colours_(TerminalAt(STDOUT_FILENO).colours) {}

bool LinePrinter::Print(std::string_view member, std::string_view line) {
  const MutexLock lock(mu_);
  if (!colours_) {
    std::cout << "[" << member << "] " << line << "\n" << std::flush;
    return std::cout.good();
  }
  const auto [found, made] = known_.try_emplace(std::string(member), known_.size());
  std::cout << "\x1b[" << kColours[found->second % std::size(kColours)] << "m[" << member << "]\x1b[0m "
            << line << "\n"
            << std::flush;
  return std::cout.good();
}

bool LinePrinter::Print(std::string_view line) {
  const std::size_t end = line.starts_with('[') ? line.find("] ") : std::string_view::npos;
  if (end != std::string_view::npos) return Print(line.substr(1, end - 1), line.substr(end + 2));
  const MutexLock lock(mu_);
  std::cout << line << "\n" << std::flush;
  return std::cout.good();
}

bool LinePrinter::broken() const {
  const MutexLock lock(mu_);
  return !std::cout.good();
}

}  // namespace trainyard::cli
