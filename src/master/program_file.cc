#include "master/program_file.h"

#include "base/status.h"
#include "graph/ir/codec.h"

namespace trainyard::master {
namespace {

constexpr std::string_view kMagic = "TYPROGS1";
constexpr std::size_t kLengthBytes = 8;

}  // namespace

// MAGIC, how many bytes the main program has (u64, little-endian), the main program, the startup program.
absl::StatusOr<graph::Programs> DecodePrograms(std::string_view bytes) {
  if (!bytes.starts_with(kMagic) || bytes.size() < kMagic.size() + kLengthBytes)
    return absl::InvalidArgumentError("these bytes are no program");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    length |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[kMagic.size() + i])) << (8 * i);
  bytes.remove_prefix(kMagic.size() + kLengthBytes);
  if (length > bytes.size())
    return absl::InvalidArgumentError("these bytes are only the beginning of a program");
  graph::Programs programs;
  TY_ASSIGN_OR_RETURN(programs.main, graph::Decode(bytes.substr(0, length)));
  TY_ASSIGN_OR_RETURN(programs.startup, graph::Decode(bytes.substr(length)));
  return programs;
}

std::string EncodePrograms(const graph::Programs& programs) {
  const std::string main = graph::Encode(programs.main);
  std::string bytes(kMagic);
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    bytes += static_cast<char>(static_cast<std::uint64_t>(main.size()) >> (8 * i));
  return bytes + main + graph::Encode(programs.startup);
}

}  // namespace trainyard::master
