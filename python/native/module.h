// The parts of the module trainyard._native, which the Python files beside it make their classes of. Its
// functions trust those files with the kinds of their arguments.
#pragma once

#include <pybind11/pybind11.h>

namespace trainyard::python {

void AddOptions(pybind11::module_& module);   // structs of options, made from their members in order
void AddNet(pybind11::module_& module);       // what builds programs
void AddPrograms(pybind11::module_& module);  // programs, and graphs
void AddSession(pybind11::module_& module);   // what runs programs
void AddJobs(pybind11::module_& module);      // jobs in a cluster
void AddElastic(pybind11::module_& module);   // workers of elastic jobs

}  // namespace trainyard::python
