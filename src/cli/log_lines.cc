#include "cli/log_lines.h"

#include <unistd.h>

#include <iostream>
#include <iterator>

#include "cli/jobs_common.h"

namespace trainyard::cli {
namespace {

constexpr int kColours[] = {36, 33, 32, 35, 34, 31, 96, 93, 92, 95, 94, 91};

}  // namespace

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
