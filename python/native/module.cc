#include "module.h"

#include <cstdlib>

#include "base/log.h"
#include "errors.h"

namespace {

// As the program's commands log unless they are told otherwise.
void ConfigureLog() {
  using namespace trainyard;
  const char* const named = std::getenv("TRAINYARD_LOG_LEVEL");
  log::Configure(log::ParseLevel(named == nullptr ? "warn" : named).value_or(log::Level::kWarn),
                 log::Format::kText);
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  using namespace trainyard::python;
  ConfigureLog();
  module.doc() = "The C++ of trainyard. Use the package's own names.";
  AddErrors(module);
  AddOptions(module);
  AddPrograms(module);
  AddNet(module);
  AddSession(module);
  AddJobs(module);
  AddElastic(module);
}
