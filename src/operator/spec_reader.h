// Reading the specs of jobs, of whatever kind: fields of a type, and the first thing that is wrong with them.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/document.h"
#include "base/text.h"

namespace trainyard::ops {

inline constexpr std::int64_t kMostReplicas = 100'000;
inline constexpr std::int64_t kMostSeconds = std::numeric_limits<std::int32_t>::max();
inline constexpr std::int64_t kMostPort = 65535;
// What Linux takes as one argument or variable, and something for its name.
inline constexpr std::size_t kLongestVariable = std::size_t{128} * 1024 - 100;
// What pods are told of each other, in the environments of one pod and of all pods of a job. What is more
// goes into one ConfigMap, which holds 1 MiB with its metadata.
inline constexpr std::size_t kMostToldToPod = std::size_t{512} << 10;
inline constexpr std::size_t kMostToldToJob = std::size_t{512} << 20;
inline constexpr std::size_t kLargestConfig = (std::size_t{1} << 20) - (std::size_t{8} << 10);
// The pods of one job together, as their templates have them.
inline constexpr std::size_t kMostOfPods = std::size_t{1} << 30;

// Of a value that is wrong, enough to know it again.
inline constexpr std::size_t kShown = 100;
std::string Shown(const Document& value);

class SpecReader {
 protected:
  // The first one is kept: "spec.replicas: must be a whole number".
  void Problem(std::string_view path, std::string_view what);
  const std::string& problem() const { return problem_; }

  // ---- members of an object; nothing: it is not there, or is not what it should be, which is told

  // A whole number from `least` to `most`.
  std::optional<std::int64_t> Number(const Document& in, std::string_view path, std::string_view key,
                                     std::int64_t most, std::int64_t least = 0);
  std::optional<bool> Flag(const Document& in, std::string_view path, std::string_view key);
  std::optional<std::string> Word(const Document& in, std::string_view path, std::string_view key);
  const Object* Map(const Document& in, std::string_view path, std::string_view key);
  const Array* List(const Document& in, std::string_view path, std::string_view key);

  // One of the names; the first one stands for nothing at all.
  template <typename T, std::size_t N>
  T OneOf(const Document& in, std::string_view path, std::string_view key,
          const std::array<std::pair<std::string_view, T>, N>& names) {
    const Document* value = Find(in, {key});
    if (value == nullptr || value->is_null()) return names[0].second;
    std::string list;
    for (const auto& [name, meaning] : names) {
      if (value->is_string() && Text(*value) == name) return meaning;
      StrAppend(list, list.empty() ? "" : ", ", name.empty() ? "\"\"" : name);
    }
    Problem(StrCat(path, ".", key), StrCat("must be one of ", list, ", not ", Shown(*value)));
    return names[0].second;
  }

  // ---- pods

  // What the operator itself looks at or adds to; the rest is for the API server to judge. Null: there are no
  // containers, which is told.
  const Array* Containers(const std::string& path, const Document* pod_template);
  void CheckPort(const std::string& path, const Document& port);
  // Names of pods begin with the job's, and services have the same names.
  void CheckJobName(std::string_view name);
  // Adds the pods of a role to the bytes generated for the job. Reports an error above the limit.
  void AddPods(const std::string& path, std::size_t replicas, const Document* pod_template);
  // Whether the addresses of all `pods` go into a ConfigMap instead of each container's environment. Reports
  // an error if they do not fit there either.
  struct Told {
    std::size_t longest = 0;  // variable
    std::size_t bytes = 0;    // of all variables
    std::int64_t pods = 0;
  };
  bool NeedsConfigFile(std::string_view path, const Told& told);
  void CheckPodNames(std::string_view job, std::size_t longest, std::string_view example);

 private:
  void CheckMetadata(const std::string& path, const Document& pod_template);

  std::string problem_;
  std::size_t most_containers_ = 0;  // of one pod
  std::size_t containers_ = 0;       // of all pods
  std::size_t pod_bytes_ = 0;        // of all templates
};

}  // namespace trainyard::ops
