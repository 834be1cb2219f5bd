// trainyard image wrap
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "base/files.h"
#include "base/process.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "embedded/agent.h"

namespace trainyard::cli {
namespace {

// The first of the tools that there is.
std::string FindTool() {
  const char* const path = std::getenv("PATH");
  for (const char* const tool : {"buildah", "docker"}) {
    for (const std::string_view folder : Split(std::string_view(path == nullptr ? "" : path), ':')) {
      if (::access(StrCat(folder, "/", tool).c_str(), X_OK) == 0) return tool;
    }
  }
  return "";
}

class ImageWrap final : public Command {
 public:
  std::string name() const override { return "image wrap"; }
  std::string summary() const override { return "Derive an image that has the agent as its entry point"; }
  std::string details() const override {
    return "By buildah or docker, whichever there is. It is hardly ever needed: the launcher puts the agent "
           "into pods by\n"
           "an init container.\n\n"
           "Example:\n  trainyard image wrap registry.example/train --tag registry.example/train:agent";
  }
  void Declare(Flags& flags) override {
    flags.Argument("IMAGE", "What it is derived from", image_);
    flags.Text({.name = "--tag", .value = "NAME", .help = "What the new one is called (IMAGE-agent)"}, tag_);
    flags.Text({.name = "--tool",
                .value = "NAME",
                .help = "buildah or docker (the first that there is)",
                .one_of = {"buildah", "docker"}},
               tool_);
    flags.Text({.name = "--script", .value = "FILE", .help = "What the agent runs (exec.py)"}, script_);
  }
  absl::Status Run() override {
    if (tool_.empty()) tool_ = FindTool();
    if (tool_.empty())
      return absl::FailedPreconditionError(
          "neither buildah nor docker is here: install one, or let the launcher's init container bring the "
          "agent");
    if (tag_.empty()) tag_ = DefaultTag();
    char folder[] = "/tmp/trainyard-image.XXXXXX";
    if (::mkdtemp(folder) == nullptr) return ErrnoStatus(errno, "cannot make a folder");
    const absl::Status built = Build(folder);
    std::error_code error;
    std::filesystem::remove_all(folder, error);
    TY_RETURN_IF_ERROR(built);
    std::cout << tag_ << std::endl;
    return absl::OkStatus();
  }

 private:
  // "a/b:1" → "a/b:1-agent", "a/b" → "a/b:agent".
  std::string DefaultTag() const {
    const std::size_t slash = image_.rfind('/');
    const std::size_t colon = image_.rfind(':');
    const bool tagged = colon != std::string::npos && (slash == std::string::npos || colon > slash);
    return StrCat(image_, tagged ? "-agent" : ":agent");
  }

  absl::Status Build(const std::string& folder) const {
    TY_RETURN_IF_ERROR(ReplaceFile(folder + "/trainyard-agent", std::string(embedded::agent().front().bytes),
                                   0755, Durability::kProcess));
    TY_RETURN_IF_ERROR(ReplaceFile(
        folder + "/Containerfile",
        StrCat("FROM ", image_,
               "\nCOPY trainyard-agent /trainyard-agent\nENTRYPOINT [\"/trainyard-agent\", \"--script=",
               Escaped(script_), "\"]\nCMD []\n"),
        0644, Durability::kProcess));
    std::vector<std::string> argv = {tool_,   "build", "--file", folder + "/Containerfile",
                                     "--tag", tag_,    folder};
    TY_ASSIGN_OR_RETURN(
        Child child,
        Child::Spawn({.argv = std::move(argv), .stdout_fd = STDERR_FILENO, .stderr_fd = STDERR_FILENO}));
    TY_ASSIGN_OR_RETURN(const ExitStatus ended, child.Wait());
    const auto* const exited = std::get_if<Exited>(&ended);
    if (exited != nullptr && exited->code == 0) return absl::OkStatus();
    return absl::InternalError(StrCat(tool_, " build ", PrintExit(ended), ": see what it says above"));
  }

  std::string image_;
  std::string tag_;
  std::string tool_;
  std::string script_ = "exec.py";
};

}  // namespace

std::unique_ptr<Command> NewImageWrap() { return std::make_unique<ImageWrap>(); }

}  // namespace trainyard::cli
