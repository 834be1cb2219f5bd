#include "module.h"

#include "errors.h"

PYBIND11_MODULE(_native, module) {
  using namespace trainyard::python;
  module.doc() = "The C++ of trainyard. Use the package's own names.";
  AddErrors(module);
  AddOptions(module);
  AddPrograms(module);
  AddNet(module);
  AddSession(module);
  AddJobs(module);
}
