// Whole files: reading one that a user named, and replacing one of our own.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace trainyard {

// The whole of it, from its start or, for a pipe, from where it is; "-" is standard input. Every error names
// the file; InvalidArgument: it has more than `most` bytes, and is not read further.
absl::StatusOr<std::string> ReadFile(const std::string& path, std::size_t most);

// All of the bytes; an error names `path`.
absl::Status WriteAll(int fd, std::string_view bytes, const std::string& path);

// As every process on this machine finds it, and the same for each of a list by commas.
std::string AbsolutePath(std::string_view path);
std::string AbsolutePaths(std::string_view list);

enum class Durability : std::uint8_t {
  kProcess,  // the file is whole or as it was, whenever this process is killed
  kPower,    // also whenever the power goes
};
// Replaces the file whole, or leaves it as it is. It has exactly that mode afterwards.
absl::Status ReplaceFile(const std::string& path, std::string_view bytes, mode_t mode, Durability durability);

}  // namespace trainyard
