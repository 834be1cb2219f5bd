#include "client/job_names.h"

#include <cctype>

#include "base/crc32c.h"
#include "base/text.h"
#include "kube/names.h"

namespace trainyard::client {
namespace {

// Leaves room for "-pserver-1234" in a name of 63 characters.
constexpr std::size_t kMostCharacters = 50;

}  // namespace

absl::Status CheckJobName(std::string_view name) {
  if (!name.empty() && kube::FindLabelValueProblem(name).empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("the job's name '", Shortened(Escaped(name), 80),
             "' must be 1 to 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends"));
}

std::string ObjectName(std::string_view job) {
  if (job.size() <= kMostCharacters && kube::FindDns1035LabelProblem(job).empty()) return std::string(job);
  std::string name;
  for (const char c : job) {
    const auto letter = static_cast<unsigned char>(c);
    name += std::isalnum(letter) != 0 ? static_cast<char>(std::tolower(letter)) : '-';
  }
  if (std::isalpha(static_cast<unsigned char>(name[0])) == 0) name.insert(0, "job-");
  name.resize(std::min(name.size(), kMostCharacters - 9));
  return StrCat(name, "-", Hex32(Crc32c(job)));
}

}  // namespace trainyard::client
