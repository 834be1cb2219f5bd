// trainyard version
#include "cli/commands.h"
#include "cli/kv_common.h"

namespace trainyard::cli {
namespace {

class Version final : public Command {
 public:
  std::string name() const override { return "version"; }
  std::string summary() const override { return "Print which version this is"; }
  void Declare(Flags&) override {}
  absl::Status Run() override { return Print("trainyard " + Release() + "\n"); }
};

}  // namespace

std::string Release() { return TRAINYARD_VERSION; }

std::unique_ptr<Command> NewVersion() { return std::make_unique<Version>(); }

}  // namespace trainyard::cli
