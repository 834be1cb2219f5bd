// The file of a checkpoint:
//
//   "TYCHECKP" | version u32 | bytes of the head u32 | head | CRC-32C of all that u32 | tensors | extra
//
// All little-endian. The head is JSON: it names the graph and lists the variables with their types. Each
// tensor follows as pieces of at most kPieceBytes, each as graph/kernel/tensor_file.h has it, with its own
// checksum: neither writing nor reading needs a second copy of a tensor. The pointer has the checksum of all
// bytes but those checksums: with them it would be the same whatever the tensors hold, as the CRC of anything
// followed by its own CRC is.
#include <algorithm>
#include <utility>

#include "base/crc32c.h"
#include "base/document.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "data/endian.h"
#include "graph/ir/validate.h"
#include "graph/kernel/tensor_file.h"
#include "ps/checkpoint.h"
#include "ps/tables_reader.h"

namespace trainyard::ps {
namespace {

constexpr std::string_view kMagic = "TYCHECKP";
constexpr std::uint32_t kFileVersion = 1;
constexpr std::size_t kFixedBytes = kMagic.size() + 2 * sizeof(std::uint32_t);
constexpr std::size_t kChecksumBytes = sizeof(std::uint32_t);
constexpr std::size_t kPieceBytes = 4 << 20;
constexpr int kSuffixLength = 10;

using graph::Tensor;

// How many elements a piece has; the last one has what is left.
std::int64_t PieceOf(graph::DataType type) {
  return static_cast<std::int64_t>(kPieceBytes / graph::SizeOf(type));
}

// Calls `work(first, count)` for each piece of a tensor with so many elements.
template <typename Work>
absl::Status ForEachPiece(graph::DataType type, std::int64_t elements, const Work& work) {
  const std::int64_t piece = PieceOf(type);
  for (std::int64_t first = 0; first < elements; first += piece) {
    TY_RETURN_IF_ERROR(work(first, std::min(piece, elements - first)));
  }
  return absl::OkStatus();
}

// What a variable takes in the file.
std::uint64_t BytesOf(const graph::VarType& type) {
  const std::int64_t elements = type.dims.Count();
  const std::int64_t piece = PieceOf(type.data_type);
  std::uint64_t bytes = static_cast<std::uint64_t>(elements / piece) * EncodedBytes(type.data_type, {piece});
  if (elements % piece > 0) bytes += EncodedBytes(type.data_type, {elements % piece});
  return bytes;
}

struct Head {
  std::string graph;
  std::int64_t step = 0;
  std::string layout;
  std::vector<std::pair<std::string, graph::VarType>> variables;
  std::uint64_t extra_bytes = 0;
  std::uint32_t extra_crc32c = 0;
};

std::string PrintHead(std::string_view graph, const CheckpointData& data) {
  Array variables;
  for (const auto& [name, tensor] : data.variables) {
    Array dims;
    for (const std::int64_t size : tensor.dims()) dims.emplace_back(size);
    variables.push_back(
        Object{{"name", name}, {"type", graph::Name(tensor.type())}, {"dims", std::move(dims)}});
  }
  return PrintJson(Object{{"graph", graph},
                          {"step", data.step},
                          {"layout", ToUtf8(data.layout)},
                          {"variables", std::move(variables)},
                          {"extra_bytes", data.extra.size()},
                          {"extra_crc32c", Crc32c(data.extra)}});
}

absl::Status ReadVariable(const Document& document, Head& head) {
  ObjectReader reader(document);
  auto& [name, type] = head.variables.emplace_back();
  name = reader.Text("name");
  const std::optional<graph::DataType> data_type = graph::ParseDataType(reader.Text("type"));
  if (!data_type) reader.Fail("type", "is not known");
  type = {.data_type = data_type.value_or(graph::DataType::kFloat32), .dims = reader.Dims("dims")};
  return reader.Finish();
}

absl::StatusOr<Head> ReadHead(std::string_view text) {
  TY_ASSIGN_OR_RETURN(const Document document, ParseJson(text));
  ObjectReader reader(document);
  Head head{.graph = reader.Text("graph"), .step = reader.Int("step", 0), .layout = reader.Text("layout")};
  for (const Document& variable : reader.List("variables")) {
    reader.Fail("variables", ReadVariable(variable, head));
  }
  head.extra_bytes = static_cast<std::uint64_t>(reader.Int("extra_bytes", 0));
  head.extra_crc32c = static_cast<std::uint32_t>(reader.Int("extra_crc32c", 0, UINT32_MAX));
  TY_RETURN_IF_ERROR(reader.Finish());
  return head;
}

// A file that has another name until it is whole.
class Draft {
 public:
  Draft(kv::FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}
  ~Draft() {
    file_.reset();
    if (!path_.empty()) (void)files_.Remove(path_);  // the next write sweeps up what cannot go now
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  absl::Status Open() {
    TY_ASSIGN_OR_RETURN(file_, files_.Open(path_, kv::FileSystem::Mode::kCreate));
    return absl::OkStatus();
  }

  // `checksum`: how many bytes at the end are one.
  absl::Status Append(std::string_view bytes, std::size_t checksum) {
    crc_ = Crc32c(bytes.substr(0, bytes.size() - checksum), crc_);
    waiting_ += bytes;
    return waiting_.size() < kPieceBytes ? absl::OkStatus() : Flush();
  }

  absl::Status Sync() {
    TY_RETURN_IF_ERROR(Flush());
    return file_->Sync();
  }

  absl::Status RenameTo(const std::string& path) {
    file_.reset();
    TY_RETURN_IF_ERROR(files_.Rename(path_, path));
    path_.clear();
    return absl::OkStatus();
  }

  std::uint64_t bytes() const { return written_ + waiting_.size(); }
  std::uint32_t crc() const { return crc_; }

 private:
  absl::Status Flush() {
    TY_RETURN_IF_ERROR(file_->WriteAt(written_, waiting_));
    written_ += waiting_.size();
    waiting_.clear();
    return absl::OkStatus();
  }

  kv::FileSystem& files_;
  std::string path_;  // empty: it has its name
  std::unique_ptr<kv::File> file_;
  std::string waiting_;
  std::uint64_t written_ = 0;
  std::uint32_t crc_ = 0;
};

absl::Status CheckWritable(std::string_view graph, const CheckpointData& data) {
  if (!graph::IsName(graph) || data.step < 0) {
    return absl::InvalidArgumentError(
        StrCat("no checkpoint can be of graph \"", Escaped(graph), "\" and step ", data.step));
  }
  for (const auto& [name, tensor] : data.variables) {
    if (!graph::IsName(name))
      return absl::InvalidArgumentError(StrCat("\"", Escaped(name), "\" is no name of a variable"));
  }
  return absl::OkStatus();
}

absl::Status WriteContent(Draft& draft, std::string_view graph, const CheckpointData& data) {
  const std::string head = PrintHead(graph, data);
  std::string begin(kMagic);
  data::AppendLittle32(kFileVersion, begin);
  data::AppendLittle32(static_cast<std::uint32_t>(head.size()), begin);
  begin += head;
  data::AppendLittle32(Crc32c(begin), begin);
  TY_RETURN_IF_ERROR(draft.Append(begin, kChecksumBytes));
  for (const auto& [name, variable] : data.variables) {
    const Tensor& tensor = variable;
    TY_RETURN_IF_ERROR(
        ForEachPiece(tensor.type(), tensor.count(), [&](std::int64_t first, std::int64_t count) {
          return draft.Append(graph::EncodeTensor(tensor.Part(first, {count})), kChecksumBytes);
        }));
  }
  return draft.Append(data.extra, 0);
}

// What writers that died have left. Another pserver of the same name that still writes fails when it is done.
absl::Status RemoveDrafts(kv::FileSystem& files, const std::string& directory, std::string_view prefix) {
  TY_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(directory));
  for (const std::string& name : names) {
    if (!name.starts_with(prefix) || !name.ends_with(".draft")) continue;
    TY_RETURN_IF_ERROR(files.Remove(StrCat(directory, "/", name)));
  }
  return absl::OkStatus();
}

// A file's bytes from its beginning on, a piece at a time.
class Input {
 public:
  Input(const kv::File& file, std::uint64_t size) : file_(file), size_(size) {}

  // The next so many, of which the last `checksum` are one; they stay until the next call. DataLoss: there
  // are not so many.
  absl::StatusOr<std::string_view> Take(std::uint64_t count, std::size_t checksum = 0) {
    if (count > left()) return absl::DataLossError("it is cut");
    if (count > buffer_.size() - at_) TY_RETURN_IF_ERROR(Fill(count));
    const std::string_view taken = std::string_view(buffer_).substr(at_, count);
    at_ += count;
    crc_ = Crc32c(taken.substr(0, count - checksum), crc_);
    return taken;
  }

  std::uint64_t left() const { return size_ - read_ + (buffer_.size() - at_); }
  std::uint32_t crc() const { return crc_; }

 private:
  absl::Status Fill(std::uint64_t count) {
    buffer_.erase(0, at_);
    at_ = 0;
    const std::uint64_t wanted =
        std::min(size_ - read_, std::max<std::uint64_t>(kPieceBytes, count - buffer_.size()));
    TY_ASSIGN_OR_RETURN(const std::string bytes, file_.ReadAt(read_, wanted));
    if (bytes.size() != wanted) return absl::DataLossError("it is cut");
    buffer_ += bytes;
    read_ += wanted;
    return absl::OkStatus();
  }

  const kv::File& file_;
  const std::uint64_t size_;
  std::uint64_t read_ = 0;  // up to here it is in the buffer or was
  std::string buffer_;
  std::size_t at_ = 0;
  std::uint32_t crc_ = 0;
};

absl::StatusOr<Head> TakeHead(Input& input) {
  TY_ASSIGN_OR_RETURN(const std::string_view fixed, input.Take(kFixedBytes));
  if (!fixed.starts_with(kMagic)) return absl::DataLossError("it is no checkpoint");
  const std::uint32_t version = data::LoadLittle32(fixed.data() + kMagic.size());
  if (version != kFileVersion)
    return absl::DataLossError(StrCat("it is of version ", version, ", and ", kFileVersion, " can be read"));
  const std::uint32_t head_bytes = data::LoadLittle32(fixed.data() + kMagic.size() + sizeof(std::uint32_t));
  TY_ASSIGN_OR_RETURN(const std::string_view text, input.Take(head_bytes));
  absl::StatusOr<Head> head = ReadHead(text);
  TY_ASSIGN_OR_RETURN(const std::string_view checksum, input.Take(kChecksumBytes, kChecksumBytes));
  if (data::LoadLittle32(checksum.data()) != input.crc()) return absl::DataLossError("its head is damaged");
  return head;
}

absl::StatusOr<Tensor> TakeTensor(Input& input, const graph::VarType& type) {
  Tensor tensor(type.data_type, type.dims);
  const std::size_t size = graph::SizeOf(type.data_type);
  TY_RETURN_IF_ERROR(ForEachPiece(
      type.data_type, tensor.count(), [&](std::int64_t first, std::int64_t count) -> absl::Status {
        TY_ASSIGN_OR_RETURN(const std::string_view bytes,
                            input.Take(graph::EncodedBytes(type.data_type, {count}), kChecksumBytes));
        TY_ASSIGN_OR_RETURN(const Tensor piece, graph::DecodeTensor(bytes));
        if (piece.type() != type.data_type || piece.count() != count)
          return absl::DataLossError("a tensor is of another type than the head says");
        std::copy_n(static_cast<const char*>(piece.raw()), piece.bytes(),
                    static_cast<char*>(tensor.raw()) + static_cast<std::size_t>(first) * size);
        return absl::OkStatus();
      }));
  return tensor;
}

absl::StatusOr<CheckpointData> ReadContent(Input& input, const Checkpoint& checkpoint) {
  TY_ASSIGN_OR_RETURN(const Head head, TakeHead(input));
  // Nothing is allocated that the file does not have.
  std::uint64_t left = input.left();
  for (const auto& [name, type] : head.variables) {
    if (BytesOf(type) > left) return absl::DataLossError("it is cut");
    left -= BytesOf(type);
  }
  if (left != head.extra_bytes) return absl::DataLossError("it is longer or shorter than its head says");
  CheckpointData data{.step = head.step, .layout = head.layout};
  for (const auto& [name, type] : head.variables) {
    absl::StatusOr<Tensor> tensor = TakeTensor(input, type);
    if (!tensor.ok()) return Annotate(tensor.status(), name);
    if (!data.variables.emplace(name, *std::move(tensor)).second)
      return absl::DataLossError(StrCat(name, " is in it twice"));
  }
  TY_ASSIGN_OR_RETURN(const std::string_view extra, input.Take(head.extra_bytes));
  if (Crc32c(extra) != head.extra_crc32c || input.crc() != checkpoint.crc32c)
    return absl::DataLossError("its checksum is not that of its bytes");
  if (data.step != checkpoint.step || data.layout != checkpoint.layout)
    return absl::DataLossError(StrCat("it is of step ", data.step, " and layout ", data.layout, ", not of ",
                                      checkpoint.step, " and ", checkpoint.layout));
  data.extra = extra;
  return data;
}

}  // namespace

absl::StatusOr<Checkpoint> WriteCheckpoint(const std::string& directory, std::string_view graph,
                                           const CheckpointData& data, kv::FileSystem& files) {
  TY_RETURN_IF_ERROR(CheckWritable(graph, data));
  TY_RETURN_IF_ERROR(files.MakeFolder(directory));
  const std::string prefix = StrCat(".", graph, ".");
  TY_RETURN_IF_ERROR(RemoveDrafts(files, directory, prefix));
  Draft draft(files, StrCat(directory, "/", prefix, data.step, ".", IdSource::Random().Suffix(kSuffixLength),
                            ".draft"));
  TY_RETURN_IF_ERROR(draft.Open());
  TY_RETURN_IF_ERROR(WriteContent(draft, graph, data));
  TY_RETURN_IF_ERROR(draft.Sync());
  Checkpoint written{.step = data.step,
                     .file = StrCat(directory, "/", graph, "-", data.step, "-", Hex32(draft.crc()), ".ckpt"),
                     .bytes = draft.bytes(),
                     .crc32c = draft.crc(),
                     .layout = ToUtf8(data.layout)};
  TY_RETURN_IF_ERROR(draft.RenameTo(written.file));
  TY_RETURN_IF_ERROR(files.SyncFolder(directory));
  return written;
}

absl::StatusOr<CheckpointData> ReadCheckpoint(const Checkpoint& checkpoint, kv::FileSystem& files) {
  TY_ASSIGN_OR_RETURN(const auto file, files.Open(checkpoint.file, kv::FileSystem::Mode::kOpen));
  TY_ASSIGN_OR_RETURN(const std::uint64_t size, file->Size());
  const std::string what = StrCat("checkpoint ", checkpoint.file);
  if (size != checkpoint.bytes) {
    return absl::DataLossError(
        StrCat(what, ": it has ", size, " bytes and had ", checkpoint.bytes, " when it was written"));
  }
  Input input(*file, size);
  absl::StatusOr<CheckpointData> data = ReadContent(input, checkpoint);
  if (data.ok()) return data;
  // What is wrong in it is damage, whatever its reader calls it; what the system says stays.
  if (absl::IsInvalidArgument(data.status()) || absl::IsDataLoss(data.status()))
    return absl::DataLossError(StrCat(what, ": ", Message(data.status())));
  return data.status();
}

}  // namespace trainyard::ps
