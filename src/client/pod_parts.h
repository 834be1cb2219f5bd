// Pieces that the manifests of graph jobs and elastic jobs are made of. Pure.
#pragma once

#include <string_view>

#include "base/document.h"
#include "graph/pass/transpile.h"

namespace trainyard::client {

inline constexpr std::string_view kTokenKey = "token";  // in secrets

// Name, namespace, and whose it is.
Object Metadata(std::string_view ns, std::string_view name);

// Entries of a container's `env`.
Object Variable(std::string_view name, std::string_view value);
Object FromSecret(std::string_view variable, std::string_view secret);  // its key `token`
Object FromField(std::string_view variable, std::string_view path);

// The command with the agent as its parent, which passes signals on, reaps, and reports how the command
// ended. The agent restarts it in place so often at most; where the operator counts restarts, that is never.
Array UnderAgent(std::string_view program, Array command, int restarts = 0);

// A container's `resources`: requests, and the same as limits but for the CPU.
Object ResourcesOf(const graph::Resource& resource);

}  // namespace trainyard::client
