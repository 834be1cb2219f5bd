#include "data/idx/file.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "data/damage.h"
#include "data/gzip.h"
#include "data/idx/header.h"

namespace trainyard::data {
namespace {

class IdxFile final : public RecordFile {
 public:
  explicit IdxFile(IdxHeader header) : header_(std::move(header)) {}

  std::uint64_t Count() const override { return header_.items; }

  std::unique_ptr<FileReader> NewReader(std::shared_ptr<const FileBytes> bytes, Scratch&) const override {
    return std::make_unique<Reader>(header_, std::move(bytes));
  }

  std::string Where(std::uint64_t number, const FileBytes&) const override {
    return StrCat("item ", number, " at byte ", header_.bytes + number * header_.item_bytes);
  }

  const ItemShape* Shape() const override { return &header_.shape; }

 private:
  class Reader final : public FileReader {
   public:
    Reader(const IdxHeader& header, std::shared_ptr<const FileBytes> bytes)
        : header_(header), bytes_(std::move(bytes)) {}

    absl::Status Read(RecordRange range, RecordVisitor visit) override {
      TY_RETURN_IF_ERROR(bytes_->CheckUnchanged());
      const char* at = bytes_->view().data() + header_.bytes + range.first * header_.item_bytes;
      for (; range.count > 0; --range.count, at += header_.item_bytes) {
        TY_RETURN_IF_ERROR(visit({at, header_.item_bytes}));
      }
      return absl::OkStatus();
    }

   private:
    const IdxHeader& header_;
    const std::shared_ptr<const FileBytes> bytes_;
  };

  const IdxHeader header_;
};

absl::Status GzipDamage(const GzipReader& gzip, const absl::Status& status) {
  return DamageAt(gzip.offset(), Message(status));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const RecordFile>> OpenIdx(const FileBytes& bytes) {
  const std::string_view view = bytes.view();
  TY_ASSIGN_OR_RETURN(IdxHeader header, ParseIdxHeader(view.substr(0, kMaxIdxHeaderBytes)));
  if (view.size() != header.FileBytes()) {
    return DamageAt(std::min<std::uint64_t>(view.size(), header.FileBytes()),
                    StrCat("the file should end at byte ", header.FileBytes(), " by its header, but ends at ",
                           view.size()));
  }
  return std::make_unique<const IdxFile>(std::move(header));
}

bool LooksLikePackedIdx(std::string_view packed) {
  if (!LooksLikeGzip(packed)) return false;
  char start[4];
  const auto n = GzipReader(packed).Read(start, sizeof start);
  return n.ok() && LooksLikeIdx({start, *n});
}

absl::StatusOr<std::shared_ptr<const FileBytes>> UnpackIdx(std::string_view packed, std::uint64_t max_bytes) {
  GzipReader gzip(packed);
  char start[kMaxIdxHeaderBytes];
  const auto known = gzip.Read(start, sizeof start);
  if (!known.ok()) return GzipDamage(gzip, known.status());
  TY_ASSIGN_OR_RETURN(const IdxHeader header, ParseIdxHeader({start, *known}));
  const std::uint64_t size = header.FileBytes();
  if (size > max_bytes) {
    return absl::ResourceExhaustedError(StrCat("unpacked it has ", size, " bytes, and at most ", max_bytes,
                                               " are allowed: raise max_unpacked_bytes, or unpack it"));
  }
  if (size > packed.size() * kMaxGzipRatio || size < *known) {
    return DamageAt(0, StrCat("by its header it unpacks to ", size, " bytes, which it cannot"));
  }
  // One byte more, to see that the end is the end.
  auto bytes = std::make_unique_for_overwrite<char[]>(size + 1);
  std::memcpy(bytes.get(), start, *known);
  const auto rest = gzip.Read(bytes.get() + *known, size + 1 - *known);
  if (!rest.ok()) return GzipDamage(gzip, rest.status());
  if (*known + *rest != size) {
    return DamageAt(gzip.offset(), StrCat("by its header it unpacks to ", size, " bytes, but it unpacks to ",
                                          *known + *rest < size ? "fewer" : "more"));
  }
  return FileBytes::Own(std::move(bytes), size);
}

}  // namespace trainyard::data
