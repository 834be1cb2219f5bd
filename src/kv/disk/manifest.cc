#include "kv/disk/manifest.h"

#include <algorithm>
#include <optional>

#include "base/crc32c.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::kv {
namespace {

constexpr std::string_view kFirstLine = "trainyard-store 1";
constexpr std::string_view kFirstWord = "trainyard-store ";
constexpr std::string_view kName = "/MANIFEST";

std::optional<ManifestEntry> ParseEntry(std::string_view line) {
  const std::vector<std::string_view> words = Split(line, ' ');
  if (words.size() < 5 || words[0] != "segment" || words[2] != "size") return std::nullopt;
  const auto id = ParseNumber<std::uint32_t>(words[1]);
  const auto size = ParseNumber<std::uint64_t>(words[3]);
  if (!id || !size) return std::nullopt;
  if (words.size() == 5 && words[4] == "active") return ManifestEntry{*id, *size, 0};
  if (words.size() != 6 || words[4] != "end") return std::nullopt;
  const auto end = ParseNumber<std::uint64_t>(words[5]);
  if (!end || *end == 0 || *end > *size) return std::nullopt;
  return ManifestEntry{*id, *size, *end};
}

}  // namespace

std::string Print(const Manifest& manifest) {
  std::string text = StrCat(kFirstLine, "\n");
  for (const ManifestEntry& entry : manifest) {
    StrAppend(text, "segment ", entry.id, " size ", entry.size,
              entry.end == 0 ? " active" : StrCat(" end ", entry.end), "\n");
  }
  StrAppend(text, "checksum ", Hex32(Crc32c(text)), "\n");
  return text;
}

absl::StatusOr<Manifest> ParseManifest(std::string_view text) {
  const std::string_view first = text.substr(0, text.find('\n'));
  const std::size_t last = text.rfind("checksum ");
  const bool whole = last != std::string_view::npos &&
                     text.substr(last) == StrCat("checksum ", Hex32(Crc32c(text.substr(0, last))), "\n");
  if (whole && first != kFirstLine && first.starts_with(kFirstWord)) {
    return absl::FailedPreconditionError("it was written by a newer trainyard: use that version");
  }
  if (!whole) return absl::DataLossError("its checksum is wrong: put back a copy of the store's folder");
  std::vector<std::string_view> lines = Split(text.substr(0, last), '\n');
  lines.pop_back();  // what follows the last newline
  if (lines.empty() || first != kFirstLine) return absl::DataLossError("it is not a trainyard manifest");
  Manifest manifest;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::optional<ManifestEntry> entry = ParseEntry(lines[i]);
    if (!entry) return absl::DataLossError(StrCat("its line ", i + 1, " makes no sense"));
    manifest.push_back(*entry);
  }
  const auto active = std::ranges::count(manifest, 0u, &ManifestEntry::end);
  if (active != 1 || manifest.back().end != 0)
    return absl::DataLossError("it does not end in an active segment");
  return manifest;
}

absl::StatusOr<Manifest> ReadManifest(FileSystem& files, const std::string& folder) {
  TY_ASSIGN_OR_RETURN(const auto file, files.Open(StrCat(folder, kName), FileSystem::Mode::kOpen));
  TY_ASSIGN_OR_RETURN(const std::uint64_t size, file->Size());
  TY_ASSIGN_OR_RETURN(const std::string text, file->ReadAt(0, size));
  absl::StatusOr<Manifest> manifest = ParseManifest(text);
  if (!manifest.ok()) return Annotate(manifest.status(), StrCat(folder, kName));
  return manifest;
}

absl::Status WriteManifest(FileSystem& files, const std::string& folder, const Manifest& manifest) {
  const std::string fresh = StrCat(folder, kName, ".new");
  {
    TY_ASSIGN_OR_RETURN(const auto file, files.Open(fresh, FileSystem::Mode::kCreate));
    TY_RETURN_IF_ERROR(file->WriteAt(0, Print(manifest)));
    TY_RETURN_IF_ERROR(file->Sync());
  }
  TY_RETURN_IF_ERROR(files.Rename(fresh, StrCat(folder, kName)));
  const absl::Status synced = files.SyncFolder(folder);
  // Which of the two manifests a crash would leave is not known any more.
  return synced.ok() ? synced : absl::DataLossError(synced.message());
}

}  // namespace trainyard::kv
