// From one layout of pservers to another. A variable of a graph is one of these:
//
//   a slice     some rows of a parameter or an accumulator; it says which (graph::Slice)
//   a shard     rows r of a table, or of its accumulator, with r mod pservers = J: "NAME.pserver_J"
//   whole       a variable of one block, the learning rate, the counter of steps
//   a piece's   what each block or shard has for itself and is not cut: "beta1_pow.block2",
//   "beta1_pow.pserver_0"
#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "ps/checkpoint.h"

namespace trainyard::ps {
namespace {

using graph::Tensor;
using graph::Var;

template <typename... Parts>
absl::Status Missing(const Parts&... parts) {
  return absl::NotFoundError(StrCat(parts...));
}

template <typename... Parts>
absl::Status Differs(const Parts&... parts) {
  return absl::InvalidArgumentError(StrCat(parts...));
}

// The name without ".block2" or ".pserver_2", and the number.
struct PieceName {
  std::string stem;
  std::optional<int> shard;  // of ".pserver_2"
};

PieceName ParsePiece(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {std::string(name)};
  const std::string_view suffix = name.substr(dot + 1);
  for (const std::string_view word : {"pserver_", "block"}) {
    if (!suffix.starts_with(word)) continue;
    const auto number = ParseNumber<int>(suffix.substr(word.size()));
    if (!number || *number < 0) continue;
    return {std::string(name.substr(0, dot)), word == "block" ? std::nullopt : number};
  }
  return {std::string(name)};
}

// Elements of a variable that one old graph had.
struct Part {
  std::int64_t offset = 0;
  Tensor tensor;
};

// What a variable was made of. A whole one has one part.
struct Parts {
  graph::Dims whole;
  std::vector<Part> parts;
};

absl::Status CheckSame(const std::string& name, const graph::VarType& now, const Tensor& before) {
  const graph::VarType was{.data_type = before.type(), .dims = before.dims()};
  if (was.data_type == now.data_type && was.dims == now.dims) return absl::OkStatus();
  return Differs(name, " is ", Print(now), " and was ", Print(was));
}

class Recutter {
 public:
  Recutter(int pservers, const OldLayout& old) : pservers_(pservers), old_(old) {}

  absl::Status Read() {
    if (old_.mains.size() != old_.data.size())
      return Differs("there are ", old_.mains.size(), " old graphs and ", old_.data.size(), " checkpoints");
    for (std::size_t i = 0; i < old_.mains.size(); ++i) TY_RETURN_IF_ERROR(ReadGraph(static_cast<int>(i)));
    for (auto& [name, parts] : cut_) {
      std::sort(parts.parts.begin(), parts.parts.end(),
                [](const Part& a, const Part& b) { return a.offset < b.offset; });
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> Make(const Var& var) const {
    if (var.slice) return Assemble(var, var.slice->of, var.slice->whole, var.slice->offset);
    const PieceName piece = ParsePiece(var.name);
    // Of a table, only what is shaped as it is is cut as it is.
    if (piece.shard && shards_.contains(piece.stem))
      return GatherRows(var, shards_.at(piece.stem), *piece.shard);
    if (piece.shard && IsTable(piece.stem, var.type.dims))
      return GatherRows(var, {{0, cut_.at(piece.stem).parts[0].tensor}}, *piece.shard);
    if (!piece.shard && shards_.contains(var.name)) return GatherRows(var, shards_.at(var.name), 0);
    if (cut_.contains(var.name)) return Assemble(var, var.name, var.type.dims, 0);
    // Each piece had one of its own, and they are all alike.
    const auto found = pieces_.find(piece.stem);
    if (found == pieces_.end()) return Missing(var.name, " is in none of the old checkpoints");
    TY_RETURN_IF_ERROR(CheckSame(var.name, var.type, found->second));
    return found->second.Clone();
  }

 private:
  using Shards = std::map<int, Tensor>;  // by pserver

  // Whether it was whole, and is cut into shards of these dims now.
  bool IsTable(const std::string& name, const graph::Dims& shard) const {
    const auto found = cut_.find(name);
    if (found == cut_.end() || old_.mains.size() != 1) return false;
    const graph::Dims& whole = found->second.whole;
    return whole.rank() == shard.rank() && whole.rank() > 0 && whole[0] > shard[0] &&
           (whole[0] + pservers_ - 1) / pservers_ == shard[0];
  }

  absl::Status ReadGraph(int number) {
    const graph::Program& main = old_.mains[static_cast<std::size_t>(number)];
    const std::optional<graph::Dims> shard_dims = FindShardDims(main, number);
    for (const Var& var : main.main().vars) {
      if (var.persistable) TY_RETURN_IF_ERROR(ReadVar(var, number, shard_dims));
    }
    return absl::OkStatus();
  }

  // Of the table's shard that an old graph has.
  static std::optional<graph::Dims> FindShardDims(const graph::Program& main, int number) {
    for (const graph::Op& op : main.main().ops) {
      for (const std::string& table : op.StringList("tables")) {
        const Var* shard = main.main().Find(StrCat(table, ".pserver_", number));
        if (shard != nullptr) return shard->type.dims;
      }
    }
    return std::nullopt;
  }

  absl::Status ReadVar(const Var& var, int number, const std::optional<graph::Dims>& shard_dims) {
    const auto& variables = old_.data[static_cast<std::size_t>(number)].variables;
    const auto found = variables.find(var.name);
    if (found == variables.end()) return absl::OkStatus();  // told when it is needed
    const Tensor& tensor = found->second;
    TY_RETURN_IF_ERROR(CheckSame(var.name, var.type, tensor));
    const PieceName piece = ParsePiece(var.name);
    if (var.slice) {
      Parts& cut = cut_[var.slice->of];
      cut.whole = var.slice->whole;
      cut.parts.push_back({var.slice->offset, tensor});
    } else if (shard_dims && piece.shard == number && var.type.dims == *shard_dims) {
      shards_[piece.stem][number] = tensor;
    } else {
      pieces_.emplace(piece.stem, tensor);
      if (!cut_.contains(var.name)) cut_[var.name] = {tensor.dims(), {{0, tensor}}};
    }
    return absl::OkStatus();
  }

  // The elements of `of` from `offset` on, wherever they were.
  absl::StatusOr<Tensor> Assemble(const Var& var, const std::string& of, const graph::Dims& whole,
                                  std::int64_t offset) const {
    const auto found = cut_.find(of);
    if (found == cut_.end())
      return Missing(of, " is in none of the old checkpoints, and ", var.name, " is of it");
    if (found->second.whole != whole)
      return Differs(of, " is ", Print(whole), " and was ", Print(found->second.whole));
    Tensor made(var.type.data_type, var.type.dims);
    std::int64_t at = offset;
    const std::int64_t end = offset + made.count();
    for (const Part& part : found->second.parts) {
      const std::int64_t part_end = part.offset + part.tensor.count();
      if (at >= end || part_end <= at) continue;
      if (part.offset > at) break;
      if (part.tensor.type() != made.type()) return Differs(of, " is of another type than it was");
      const std::int64_t count = std::min(end, part_end) - at;
      Copy(part.tensor, at - part.offset, made, at - offset, count);
      at += count;
    }
    if (at < end) {
      return Missing("elements ", at, " to ", end - 1, " of ", of,
                     " are in none of the old checkpoints, and ", var.name, " needs them");
    }
    return made;
  }

  // Row k of shard J is row k * pservers + J of the table. Rows beyond the table's end, which shards have so
  // that all are of one size, are whatever they were, or zero.
  absl::StatusOr<Tensor> GatherRows(const Var& var, const Shards& old_shards, int shard) const {
    const auto count = static_cast<std::int64_t>(old_.mains.size());
    if (static_cast<std::int64_t>(old_shards.size()) < count) {
      std::int64_t first = 0;
      while (old_shards.contains(static_cast<int>(first))) ++first;
      return Missing(ParsePiece(var.name).stem, ".pserver_", first,
                     " is in none of the old checkpoints, and ", var.name, " needs rows of it");
    }
    const graph::Dims& dims = var.type.dims;
    for (const auto& [number, from] : old_shards) {
      if (from.type() != var.type.data_type || from.dims().rank() != dims.rank() || dims.rank() == 0 ||
          from.dims().Part(1, dims.rank()) != dims.Part(1, dims.rank())) {
        return Differs("the rows of ", var.name, " are not what they were");
      }
    }
    Tensor made(var.type.data_type, dims);
    const std::int64_t width = dims.Count(1, dims.rank());
    for (std::int64_t k = 0; k < dims[0]; ++k) {
      const std::int64_t row = k * pservers_ + shard;
      const Tensor& from = old_shards.at(static_cast<int>(row % count));
      if (row / count < from.dims()[0]) Copy(from, row / count * width, made, k * width, width);
    }
    return made;
  }

  static void Copy(const Tensor& from, std::int64_t from_first, Tensor& to, std::int64_t to_first,
                   std::int64_t count) {
    const std::size_t size = graph::SizeOf(from.type());
    std::copy_n(static_cast<const char*>(from.raw()) + static_cast<std::size_t>(from_first) * size,
                static_cast<std::size_t>(count) * size,
                static_cast<char*>(to.raw()) + static_cast<std::size_t>(to_first) * size);
  }

  const int pservers_;
  const OldLayout& old_;
  std::map<std::string, Parts, std::less<>> cut_;      // by the whole variable's name
  std::map<std::string, Shards, std::less<>> shards_;  // by the table's name
  std::map<std::string, Tensor, std::less<>> pieces_;  // by stem: the first one's
};

}  // namespace

absl::StatusOr<std::map<std::string, graph::Tensor>> Recut(const std::vector<graph::Var>& variables,
                                                           int pservers, const OldLayout& old) {
  if (pservers < 1) return Differs("there are ", pservers, " pservers");
  Recutter recutter(pservers, old);
  TY_RETURN_IF_ERROR(recutter.Read());
  std::map<std::string, Tensor> made;
  for (const Var& var : variables) {
    if (!var.persistable) continue;
    absl::StatusOr<Tensor> tensor = recutter.Make(var);
    if (absl::IsNotFound(tensor.status()) && var.name == graph::kShare) continue;
    if (!tensor.ok()) return tensor.status();
    made.emplace(var.name, *std::move(tensor));
  }
  return made;
}

}  // namespace trainyard::ps
