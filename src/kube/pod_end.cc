#include "kube/pod_end.h"

#include "base/process.h"
#include "base/text.h"

namespace trainyard::kube {
namespace {

constexpr int kSignalCode = 128;
constexpr std::size_t kMostMessage = 300;

}  // namespace

std::string DescribeEnd(const CompactPod& pod) {
  std::string text;
  for (const ContainerStatus& container : pod.containers) {
    if (container.state.kind != ContainerState::Kind::kTerminated || container.state.exit_code == 0) continue;
    const int signal =
        container.state.signal != 0 ? container.state.signal : container.state.exit_code - kSignalCode;
    text = container.state.exit_code > kSignalCode || container.state.signal != 0
               ? StrCat("was ", PrintExit(Signaled{.signal = signal}))
               : StrCat("exited ", container.state.exit_code);
    const std::string_view reason = container.state.reason.view();
    if (!reason.empty() && reason != "Error") StrAppend(text, " (", reason, ")");
    // Its first line is the cause; below it may be the last lines of the log.
    const std::string_view message = Split(std::string_view(container.state.message), '\n').front();
    if (!message.empty() && StrCat("was ", message) != text && message != text)
      StrAppend(text, ": ", Shortened(message, kMostMessage));
    break;
  }
  if (text.empty()) text = pod.reason.empty() ? "ended" : StrCat("was ended (", pod.reason.view(), ")");
  if (!pod.node.empty()) StrAppend(text, " on ", pod.node.view());
  if (!pod.message.empty() && text.find(pod.message) == std::string::npos)
    StrAppend(text, ": ", Shortened(pod.message, kMostMessage));
  return text;
}

}  // namespace trainyard::kube
