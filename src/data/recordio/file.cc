#include "data/recordio/file.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "data/damage.h"
#include "data/recordio/chunk.h"
#include "data/recordio/index.h"

namespace trainyard::data {
namespace {

constexpr std::size_t kNone = SIZE_MAX;

class RecordIoFile final : public RecordFile {
 public:
  RecordIoFile(std::vector<ChunkPlace> chunks, std::uint64_t max_chunk_bytes)
      : chunks_(std::move(chunks)), max_chunk_bytes_(max_chunk_bytes) {}

  std::uint64_t Count() const override { return chunks_.empty() ? 0 : chunks_.back().end; }

  std::unique_ptr<FileReader> NewReader(std::shared_ptr<const FileBytes> bytes,
                                        Scratch& scratch) const override {
    return std::make_unique<Reader>(*this, std::move(bytes), scratch);
  }

  std::string Where(std::uint64_t number, const FileBytes&) const override {
    const std::size_t chunk = Find(number);
    return StrCat("record ", number - FirstOf(chunk), " of the chunk at byte ", chunks_[chunk].offset);
  }

 private:
  class Reader final : public FileReader {
   public:
    Reader(const RecordIoFile& file, std::shared_ptr<const FileBytes> bytes, Scratch& scratch)
        : file_(file), bytes_(std::move(bytes)), chunk_(scratch) {}

    absl::Status Read(RecordRange range, RecordVisitor visit) override {
      TY_RETURN_IF_ERROR(bytes_->CheckUnchanged());
      if (range.count == 0) return absl::OkStatus();
      const std::size_t last = file_.Find(range.first + range.count - 1);
      for (std::size_t at = file_.Find(range.first); at <= last; ++at) {
        TY_RETURN_IF_ERROR(Load(at, last));
        const std::uint64_t skipped = range.first - file_.FirstOf(at);
        const std::uint64_t here = std::min<std::uint64_t>(range.count, chunk_.size() - skipped);
        for (std::uint64_t i = skipped; i < skipped + here; ++i) TY_RETURN_IF_ERROR(visit(chunk_[i]));
        range = {range.first + here, range.count - here};
      }
      return absl::OkStatus();
    }

   private:
    // Those up to the last one are read soon.
    absl::Status Load(std::size_t at, std::size_t last) {
      if (at == loaded_) return absl::OkStatus();
      loaded_ = kNone;
      TY_RETURN_IF_ERROR(bytes_->CheckUnchanged());
      const std::uint64_t offset = file_.chunks_[at].offset;
      WillNeed(at, std::min(at + 1, last));
      TY_RETURN_IF_ERROR(chunk_.Load(bytes_->view(), offset, file_.max_chunk_bytes_));
      if (chunk_.size() != file_.chunks_[at].end - file_.FirstOf(at)) {
        return DamageAt(offset, "the header of the chunk was changed since the file was opened");
      }
      loaded_ = at;
      return absl::OkStatus();
    }

    // The disk may read the next chunk while this one is verified; by itself the system guesses a few pages.
    void WillNeed(std::size_t first, std::size_t last) {
      const std::uint64_t start = file_.chunks_[first].offset;
      const bool more = last + 1 < file_.chunks_.size();
      bytes_->WillNeed(start, (more ? file_.chunks_[last + 1].offset : bytes_->view().size()) - start);
    }

    const RecordIoFile& file_;
    const std::shared_ptr<const FileBytes> bytes_;
    LoadedChunk chunk_;
    std::size_t loaded_ = kNone;  // which chunk it is
  };

  // The chunk that the record is in.
  std::size_t Find(std::uint64_t number) const {
    const auto behind = [](std::uint64_t wanted, const ChunkPlace& chunk) { return wanted < chunk.end; };
    return static_cast<std::size_t>(std::upper_bound(chunks_.begin(), chunks_.end(), number, behind) -
                                    chunks_.begin());
  }
  std::uint64_t FirstOf(std::size_t chunk) const { return chunk == 0 ? 0 : chunks_[chunk - 1].end; }

  const std::vector<ChunkPlace> chunks_;
  const std::uint64_t max_chunk_bytes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const RecordFile>> OpenRecordIo(const FileBytes& bytes,
                                                               std::uint64_t max_chunk_bytes) {
  TY_ASSIGN_OR_RETURN(auto chunks, IndexChunks(bytes.view(), max_chunk_bytes));
  return std::make_unique<const RecordIoFile>(std::move(chunks), max_chunk_bytes);
}

}  // namespace trainyard::data
