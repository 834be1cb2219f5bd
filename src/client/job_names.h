// What a graph job may be called, and what its objects in the cluster are called. Pure.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace trainyard::client {

// Letters, digits, '-', '_' and '.', beginning and ending with a letter or digit; 63 characters at most: what
// a label's value may be. InvalidArgument: what is wrong with it.
absl::Status CheckJobName(std::string_view name);

// The name of its AITrainingJob, of whose name pods and services are called: the job's own where that can be
// ("mnist"), else its letters and a checksum of it ("test_1" is "test-1-c1e8a2b0"). Different jobs have
// different ones.
std::string ObjectName(std::string_view job);

}  // namespace trainyard::client
