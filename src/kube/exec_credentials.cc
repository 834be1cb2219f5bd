#include "kube/exec_credentials.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "base/document.h"
#include "base/mutex.h"
#include "base/process.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::kube {
namespace {

constexpr std::size_t kMaxOutputBytes = std::size_t{1} << 20;

std::string ExecInfo(const ExecPlugin& plugin) {
  std::string info = StrCat("{\"kind\":\"ExecCredential\",\"apiVersion\":\"", plugin.api_version,
                            "\",\"spec\":{\"interactive\":false");
  if (!plugin.cluster_json.empty()) StrAppend(info, ",\"cluster\":", plugin.cluster_json);
  return info + "}}";
}

// This process's environment, with the plugin's before it: where a name is given twice, the last one counts.
std::vector<std::pair<std::string, std::string>> PluginEnvironment(const ExecPlugin& plugin) {
  std::vector<std::pair<std::string, std::string>> env;
  const auto set = [&](std::string_view name, std::string_view value) {
    const auto found = std::ranges::find(env, name, &std::pair<std::string, std::string>::first);
    if (found == env.end()) {
      env.emplace_back(name, value);
    } else {
      found->second = value;
    }
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) set(text.substr(0, equals), text.substr(equals + 1));
  }
  for (const auto& [name, value] : plugin.env) set(name, value);
  set("KUBERNETES_EXEC_INFO", ExecInfo(plugin));
  return env;
}

// Everything until the writer closes its end.
absl::StatusOr<std::string> ReadPipe(int fd, SteadyTime deadline) {
  std::string output;
  std::array<char, 4096> buffer{};
  while (true) {
    const absl::Duration left = deadline - Clock::System().Steady();
    if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("it does not end");
    pollfd poller{.fd = fd, .events = POLLIN, .revents = 0};
    const auto wait = std::min(absl::ToInt64Milliseconds(left) + 1, std::int64_t{60'000});
    const int ready = ::poll(&poller, 1, static_cast<int>(wait));
    if (ready < 0 && errno != EINTR) return ErrnoStatus(errno, "poll on its output");
    if (ready <= 0) continue;
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got == 0) return output;
    if (got < 0 && errno != EINTR) return ErrnoStatus(errno, "reading its output");
    if (got > 0) output.append(buffer.data(), static_cast<std::size_t>(got));
    if (output.size() > kMaxOutputBytes) return absl::InvalidArgumentError("it prints more than 1 MiB");
  }
}

absl::StatusOr<std::string> RunPlugin(const ExecPlugin& plugin) {
  if (plugin.interactive_only) {
    return absl::FailedPreconditionError(
        "it asks its user something (interactiveMode: Always), which is not possible here");
  }
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe for its output");
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  ProcessSpec spec{.argv = {plugin.command}, .env = PluginEnvironment(plugin)};
  spec.argv.insert(spec.argv.end(), plugin.args.begin(), plugin.args.end());
  spec.stdout_fd = writer.get();
  spec.stderr_fd = STDERR_FILENO;
  absl::StatusOr<Child> child = Child::Spawn(spec);
  if (!child.ok()) {
    return absl::NotFoundError(
        StrCat(child.status().message(), plugin.install_hint.empty() ? "" : "\n", plugin.install_hint));
  }
  writer.Reset();
  const SteadyTime deadline = Clock::System().Steady() + plugin.timeout;
  TY_ASSIGN_OR_RETURN(std::string output, ReadPipe(reader.get(), deadline));
  TY_ASSIGN_OR_RETURN(const ExitStatus ended, child->Wait(deadline - Clock::System().Steady()));
  if (ShellCode(ended) != 0) {
    return absl::InternalError(StrCat("it ", PrintExit(ended), "; its standard error says why"));
  }
  return output;
}

class ExecCredentials final : public Credentials {
 public:
  ExecCredentials(ExecPlugin plugin, Credential rest, Clock& clock)
      : plugin_(std::move(plugin)), rest_(std::move(rest)), clock_(clock) {}

  absl::StatusOr<Credential> Get() override {
    MutexLock lock(mu_);
    if (!answer_ || clock_.Now() >= answer_->expires) TY_RETURN_IF_ERROR(Run());
    return Present();
  }

  void Refuse(const Credential& refused) override {
    MutexLock lock(mu_);
    // Many requests may be refused with one token: only the first of them has it replaced.
    if (answer_ && refused == Present()) answer_.reset();
  }

 private:
  absl::Status Run() TY_REQUIRES(mu_) {
    answer_.reset();
    absl::StatusOr<std::string> output = RunPlugin(plugin_);
    if (!output.ok()) return Failed(output.status());
    absl::StatusOr<ExecAnswer> answer = ParseExecAnswer(*output, plugin_.api_version);
    if (!answer.ok()) return Failed(answer.status());
    answer_ = *std::move(answer);
    return absl::OkStatus();
  }

  absl::Status Failed(const absl::Status& why) const {
    return absl::UnauthenticatedError(StrCat("user \"", plugin_.user,
                                             "\" of the kubeconfig gets its credentials from ",
                                             plugin_.command, ", which failed: ", why.message()));
  }

  Credential Present() const TY_REQUIRES(mu_) {
    Credential credential = rest_;
    const Credential& printed = answer_->credential;
    credential.headers.insert(credential.headers.end(), printed.headers.begin(), printed.headers.end());
    if (!printed.certificate_pem.empty()) {
      credential.certificate_pem = printed.certificate_pem;
      credential.key_pem = printed.key_pem;
    }
    return credential;
  }

  const ExecPlugin plugin_;
  const Credential rest_;
  Clock& clock_;
  Mutex mu_;
  std::optional<ExecAnswer> answer_ TY_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<ExecAnswer> ParseExecAnswer(std::string_view output, std::string_view api_version) {
  TY_ASSIGN_OR_RETURN(const Document document, ParseJson(output));
  if (StringAt(document, {"kind"}) != "ExecCredential") {
    return absl::InvalidArgumentError("it does not print an ExecCredential");
  }
  if (const std::string_view given = StringAt(document, {"apiVersion"}); given != api_version) {
    return absl::InvalidArgumentError(
        StrCat("it prints an ExecCredential of ", given, ", the kubeconfig says ", api_version));
  }
  ExecAnswer answer;
  const std::string_view token = StringAt(document, {"status", "token"});
  answer.credential.certificate_pem = StringAt(document, {"status", "clientCertificateData"});
  answer.credential.key_pem = StringAt(document, {"status", "clientKeyData"});
  if (answer.credential.certificate_pem.empty() != answer.credential.key_pem.empty()) {
    return absl::InvalidArgumentError(
        "it prints one of clientCertificateData and clientKeyData without the other");
  }
  if (token.empty() && answer.credential.key_pem.empty()) {
    return absl::InvalidArgumentError("it prints neither a token nor a client certificate");
  }
  if (token.find_first_of("\r\n") != std::string_view::npos) {
    return absl::InvalidArgumentError("it prints a token of more than one line");
  }
  if (!token.empty()) answer.credential.headers.push_back(BearerHeader(token));
  if (const std::string text(StringAt(document, {"status", "expirationTimestamp"})); !text.empty()) {
    std::string error;
    if (!absl::ParseTime(absl::RFC3339_full, text, &answer.expires, &error)) {
      return absl::InvalidArgumentError(StrCat("its expirationTimestamp is no time: ", error));
    }
  }
  return answer;
}

std::unique_ptr<Credentials> NewExecCredentials(ExecPlugin plugin, Credential rest, Clock& clock) {
  return std::make_unique<ExecCredentials>(std::move(plugin), std::move(rest), clock);
}

}  // namespace trainyard::kube
