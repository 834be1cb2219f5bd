// What the commands for launched tasks share: a way to the launcher, which is started where there is none.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/document.h"
#include "cli/cluster_common.h"
#include "cli/command.h"
#include "http/calls.h"

namespace trainyard::cli {

// A launcher that answers.
class LauncherClient {
 public:
  LauncherClient(std::unique_ptr<http::Calls> calls, std::string url, std::string token, bool embedded)
      : calls_(std::move(calls)), url_(std::move(url)), token_(std::move(token)), embedded_(embedded) {}

  // A JSON answer. NotFound, AlreadyExists, InvalidArgument and others as the launcher says; Unavailable: it
  // does not answer.
  absl::StatusOr<Document> Ask(std::string method, const std::string& path, std::string body = "");
  http::Call Call(std::string method, const std::string& path) const;
  http::Calls& calls() { return *calls_; }
  bool embedded() const { return embedded_; }

 private:
  std::unique_ptr<http::Calls> calls_;
  const std::string url_;
  const std::string token_;
  const bool embedded_;  // its members are processes of this machine
};

// "NAME=VALUE" of each --env, into a task's environment. What is none is misuse.
absl::Status TakeVariables(const std::vector<std::string>& texts, std::map<std::string, std::string>& env);
// A flag's number as an int; misuse: it is too large for one.
absl::Status TakeInt(std::string_view flag, const std::optional<std::int64_t>& given, int& bound);
// On this machine an image is a folder: this one if none is named. Whether it is one.
bool TakeImageFolder(std::string& image);

class LauncherFlags {
 public:
  void Declare(Flags& flags);
  // With --master the launcher there; else the embedded cluster's. `start`: the cluster and the launcher are
  // started if they do not run.
  absl::StatusOr<std::unique_ptr<LauncherClient>> Connect(bool start);

 private:
  absl::StatusOr<std::unique_ptr<LauncherClient>> ConnectTo(std::string url, std::string token,
                                                            bool embedded) const;
  absl::Status EnsureCluster(const local::Home& home, bool start) const;

  std::string master_;
  std::string token_file_;
  HomeFlag home_;
};

}  // namespace trainyard::cli
