// What the commands that speak with any cluster share: which cluster, and which namespace.
#pragma once

#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/document.h"
#include "base/text.h"
#include "cli/cluster_common.h"
#include "cli/command.h"
#include "job/scale/autoscale.h"
#include "kube/http.h"
#include "kube/kubeconfig.h"

namespace trainyard::cli {

// --kubeconfig and --context. Without them, the cluster is found as kubectl finds it, and else the embedded
// one of the home folder is meant.
class KubeFlags {
 public:
  void Declare(Flags& flags);
  absl::StatusOr<kube::ClusterConfig> Load() const;
  // The same, but at another address, HOST:PORT or a URL, if one is given. Where no cluster is configured,
  // the address alone will do.
  absl::StatusOr<kube::ClusterConfig> LoadAt(const std::string& address) const;

 private:
  std::string kubeconfig_;
  std::string context_;
  HomeFlag home_;
};

// ---- Objects of a file that a user names with -f.

// What the file has, in YAML or JSON, without what is empty; "-" is standard input.
absl::StatusOr<std::vector<Document>> ReadObjectFile(const std::string& file);
// With the items of lists in the place of the lists.
std::vector<Document> Expand(std::vector<Document> documents);

// ---- What commands that scale share: how much of the cluster may be asked for.

// --max-load-desired
class MaxLoadFlag {
 public:
  void Declare(Flags& flags) {
    flags.Text({.name = "--max-load-desired",
                .value = "PART",
                .help = "How much of the cluster's cpu the autoscaler lets be asked for, up to 1 (0.97)"},
               text_);
  }
  absl::StatusOr<job::scale::Limits> Get() const {
    job::scale::Limits limits;
    if (text_.empty()) return limits;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), limits.max_load);
    const bool whole = error == std::errc() && end == text_.data() + text_.size();
    if (!whole || !(limits.max_load > 0) || limits.max_load > 1) {
      return UsageError(
          StrCat("--max-load-desired: '", Escaped(text_), "' is no part of the whole: write it as 0.97"));
    }
    return limits;
  }

 private:
  std::string text_;
};

}  // namespace trainyard::cli
