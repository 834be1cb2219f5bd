#include "kv/large_value.h"

#include <cstdio>
#include <vector>

#include "base/crc32c.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::kv {
namespace {

constexpr std::size_t kChunkBytes = 1 << 20;
constexpr std::string_view kMagic = "trainyard-chunks 1 ";
constexpr int kAttempts = 20;  // against others who write the same key

struct Head {
  std::string generation;
  std::size_t chunks = 0;
  std::size_t bytes = 0;
  std::uint32_t checksum = 0;
};

std::string Print(const Head& head) {
  return StrCat(kMagic, head.generation, " ", head.chunks, " ", head.bytes, " ", Hex32(head.checksum));
}

std::optional<Head> ParseHead(std::string_view text) {
  if (!text.starts_with(kMagic)) return std::nullopt;
  const std::vector<std::string_view> words = Split(text.substr(kMagic.size()), ' ');
  if (words.size() != 4) return std::nullopt;
  const auto chunks = ParseNumber<std::size_t>(words[1]);
  const auto bytes = ParseNumber<std::size_t>(words[2]);
  const auto checksum = ParseNumber<std::uint32_t>(words[3], 16);
  if (!chunks || !bytes || !checksum) return std::nullopt;
  return Head{std::string(words[0]), *chunks, *bytes, *checksum};
}

std::string ChunkPrefix(std::string_view key) { return StrCat(key, "/.chunk/"); }
std::string GenerationPrefix(std::string_view key, std::string_view generation) {
  return StrCat(ChunkPrefix(key), generation, "/");
}
std::string ChunkKey(std::string_view key, std::string_view generation, std::size_t number) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "%06zu", number);
  return StrCat(GenerationPrefix(key, generation), digits);
}

absl::StatusOr<std::string> ReadChunks(Store& store, std::string_view key, const Head& head,
                                       Revision revision) {
  std::string value;
  for (std::size_t i = 0; i < head.chunks; ++i) {
    TY_ASSIGN_OR_RETURN(const GetResult chunk, store.Get(ChunkKey(key, head.generation, i), revision));
    if (!chunk.kv)
      return absl::DataLossError(StrCat("chunk ", i, " of '", Escaped(key), "' is missing: put it again"));
    value += chunk.kv->value;
  }
  if (value.size() != head.bytes || Crc32c(value) != head.checksum) {
    return absl::DataLossError(
        StrCat("the chunks of '", Escaped(key), "' are not what was put: put it again"));
  }
  return value;
}

// One attempt, of a generation of its own; nothing if another writer swept up its chunks before it could
// commit.
absl::StatusOr<std::optional<Revision>> PutOnce(Store& store, IdSource& ids, std::string_view key,
                                                std::string_view value, std::optional<Revision> expected) {
  Head head{.generation = ids.Uuid(), .bytes = value.size(), .checksum = Crc32c(value)};
  const auto abandon = [&](absl::Status why) {
    // What cannot be deleted now is swept up by the next one that writes the key.
    (void)store.Delete(KeyRange::Prefix(GenerationPrefix(key, head.generation)));
    return why;
  };
  for (std::size_t at = 0; at < value.size() || at == 0; at += kChunkBytes, ++head.chunks) {
    const auto put = store.Put(ChunkKey(key, head.generation, head.chunks), value.substr(at, kChunkBytes));
    if (!put.ok()) return abandon(put.status());
  }
  const KeyRange all = KeyRange::Prefix(ChunkPrefix(key));
  const KeyRange own = KeyRange::Prefix(GenerationPrefix(key, head.generation));
  TxnRequest commit;
  // The first chunk was written first: a sweep that took any has taken it.
  commit.compares = {Exists(ChunkKey(key, head.generation, 0))};
  if (expected) commit.compares.push_back(ModifiedAt(key, *expected));
  commit.then = {PutOp{std::string(key), Print(head)}, DeleteOp{KeyRange::Between(all.begin, own.begin)},
                 DeleteOp{KeyRange::Between(*own.end, *all.end)}};
  commit.otherwise = {GetOp{{.range = KeyRange::Key(key), .keys_only = true}}};
  const absl::StatusOr<TxnResult> committed = store.Txn(commit);
  // Where it is not known whether the head was written, its chunks must stay.
  if (absl::IsUnknown(committed.status())) return committed.status();
  if (!committed.ok()) return abandon(committed.status());
  if (committed->succeeded) return committed->revision;
  const auto& now = std::get<RangeResult>(committed->results.at(0)).kvs;
  if (expected && *expected != (now.empty() ? 0 : now[0].mod_revision)) {
    return abandon(absl::AbortedError(StrCat("'", Escaped(key), "' was not last modified at revision ",
                                             *expected, ": read it again and decide anew")));
  }
  (void)abandon(absl::OkStatus());
  return std::nullopt;
}

}  // namespace

absl::StatusOr<Revision> PutLarge(Store& store, IdSource& ids, std::string_view key, std::string_view value,
                                  std::optional<Revision> expected) {
  TY_RETURN_IF_ERROR(ValidateKey(key));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    TY_ASSIGN_OR_RETURN(const std::optional<Revision> put, PutOnce(store, ids, key, value, expected));
    if (put) return *put;
  }
  return absl::AbortedError(
      StrCat("'", Escaped(key), "' is being written by too many at once: try again later"));
}

absl::StatusOr<std::optional<LargeValue>> GetLarge(Store& store, std::string_view key) {
  absl::Status compacted;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    TY_ASSIGN_OR_RETURN(GetResult head, store.Get(key));
    if (!head.kv) return std::nullopt;
    const std::optional<Head> parsed = ParseHead(head.kv->value);
    if (!parsed) return LargeValue{std::move(head.kv->value), head.kv->mod_revision};
    absl::StatusOr<std::string> value = ReadChunks(store, key, *parsed, head.revision);
    if (value.ok()) return LargeValue{*std::move(value), head.kv->mod_revision};
    // Compacted while it was being read: what is read next is newer.
    if (!IsCompacted(value.status())) return value.status();
    compacted = value.status();
  }
  return Annotate(compacted, StrCat("'", Escaped(key), "' is compacted faster than it can be read"));
}

absl::StatusOr<bool> DeleteLarge(Store& store, std::string_view key) {
  TY_RETURN_IF_ERROR(ValidateKey(key));
  TY_ASSIGN_OR_RETURN(
      const TxnResult result,
      store.Txn({.then = {DeleteOp{KeyRange::Key(key)}, DeleteOp{KeyRange::Prefix(ChunkPrefix(key))}}}));
  return std::get<DeleteResult>(result.results.at(0)).deleted +
             std::get<DeleteResult>(result.results.at(1)).deleted >
         0;
}

}  // namespace trainyard::kv
