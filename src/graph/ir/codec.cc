#include "graph/ir/codec.h"

#include <utility>

#include "base/text.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "graph/ir/program.pb.h"
#include "graph/ir/validate.h"

namespace trainyard::graph {
namespace {

struct AttrWriter {
  wire::AttrDesc& out;
  void operator()(bool value) { out.set_flag(value); }
  void operator()(std::int64_t value) { out.set_integer(value); }
  void operator()(double value) { out.set_number(value); }
  void operator()(const std::string& value) { out.set_text(value); }
  void operator()(const Ints& values) {
    *out.mutable_integers()->mutable_values() = {values.begin(), values.end()};
  }
  void operator()(const Floats& values) {
    *out.mutable_numbers()->mutable_values() = {values.begin(), values.end()};
  }
  void operator()(const Strings& values) {
    *out.mutable_texts()->mutable_values() = {values.begin(), values.end()};
  }
  void operator()(const BlockRef& value) { out.set_block(static_cast<std::uint32_t>(value.block)); }
  void operator()(const std::vector<BlockRef>& values) {
    wire::BlockList& list = *out.mutable_blocks();
    for (const BlockRef& ref : values) list.add_values(static_cast<std::uint32_t>(ref.block));
  }
};

void Write(const Slots& slots, google::protobuf::RepeatedPtrField<wire::SlotDesc>& out) {
  for (const auto& [name, variables] : slots) {
    wire::SlotDesc& slot = *out.Add();
    slot.set_name(name);
    *slot.mutable_variables() = {variables.begin(), variables.end()};
  }
}

void Write(const Op& op, wire::OpDesc& out) {
  out.set_type(op.type);
  Write(op.inputs, *out.mutable_inputs());
  Write(op.outputs, *out.mutable_outputs());
  for (const auto& [name, value] : op.attrs) {
    wire::AttrDesc& attr = *out.add_attrs();
    attr.set_name(name);
    std::visit(AttrWriter{attr}, value);
  }
  out.set_role(static_cast<std::uint32_t>(op.role));
  out.set_parameter(op.parameter);
}

void Write(const Var& var, wire::VarDesc& out) {
  out.set_name(var.name);
  out.set_kind(static_cast<std::uint32_t>(var.type.kind));
  out.set_data_type(static_cast<std::uint32_t>(var.type.data_type));
  *out.mutable_dims() = {var.type.dims.begin(), var.type.dims.end()};
  out.set_persistable(var.persistable);
  out.set_parameter(var.parameter);
  out.set_stop_gradient(var.stop_gradient);
  if (!var.slice) return;
  out.mutable_slice()->set_of(var.slice->of);
  *out.mutable_slice()->mutable_whole() = {var.slice->whole.begin(), var.slice->whole.end()};
  out.mutable_slice()->set_offset(var.slice->offset);
}

std::optional<Attr> Read(const wire::AttrDesc& attr) {
  switch (attr.value_case()) {
    case wire::AttrDesc::kFlag:
      return attr.flag();
    case wire::AttrDesc::kInteger:
      return attr.integer();
    case wire::AttrDesc::kNumber:
      return attr.number();
    case wire::AttrDesc::kText:
      return attr.text();
    case wire::AttrDesc::kIntegers:
      return Ints(attr.integers().values().begin(), attr.integers().values().end());
    case wire::AttrDesc::kNumbers:
      return Floats(attr.numbers().values().begin(), attr.numbers().values().end());
    case wire::AttrDesc::kTexts:
      return Strings(attr.texts().values().begin(), attr.texts().values().end());
    case wire::AttrDesc::kBlock:
      return BlockRef{static_cast<int>(attr.block())};
    case wire::AttrDesc::kBlocks: {
      std::vector<BlockRef> refs;
      for (const std::uint32_t block : attr.blocks().values()) refs.push_back({static_cast<int>(block)});
      return refs;
    }
    case wire::AttrDesc::VALUE_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

absl::Status Malformed(std::string_view what) {
  return absl::InvalidArgumentError(StrCat("malformed program: ", what));
}

absl::Status Read(const google::protobuf::RepeatedPtrField<wire::SlotDesc>& slots, Slots& out) {
  for (const wire::SlotDesc& slot : slots) {
    const auto [unused, added] =
        out.try_emplace(slot.name(), slot.variables().begin(), slot.variables().end());
    if (!added) return Malformed(StrCat("slot ", slot.name(), " comes twice"));
  }
  return absl::OkStatus();
}

absl::Status Read(const wire::OpDesc& desc, Op& out) {
  out.type = desc.type();
  if (absl::Status read = Read(desc.inputs(), out.inputs); !read.ok()) return read;
  if (absl::Status read = Read(desc.outputs(), out.outputs); !read.ok()) return read;
  for (const wire::AttrDesc& attr : desc.attrs()) {
    std::optional<Attr> value = Read(attr);
    if (!value) return Malformed(StrCat("attribute ", attr.name(), " has no value"));
    if (!out.attrs.try_emplace(attr.name(), *std::move(value)).second) {
      return Malformed(StrCat("attribute ", attr.name(), " comes twice"));
    }
  }
  if (desc.role() > static_cast<std::uint32_t>(Role::kRpc)) {
    return Malformed(StrCat("operator ", desc.type(), " has the unknown role ", desc.role()));
  }
  out.role = static_cast<Role>(desc.role());
  out.parameter = desc.parameter();
  return absl::OkStatus();
}

absl::Status Read(const wire::VarDesc& desc, Var& out) {
  out.name = desc.name();
  if (desc.kind() > static_cast<std::uint32_t>(VarKind::kSparseRows) ||
      desc.data_type() > static_cast<std::uint32_t>(DataType::kBool)) {
    return Malformed(StrCat("variable ", desc.name(), " is of an unknown type"));
  }
  out.type = {
      .kind = static_cast<VarKind>(desc.kind()),
      .data_type = static_cast<DataType>(desc.data_type()),
      .dims = Dims(absl::MakeConstSpan(desc.dims().data(), static_cast<std::size_t>(desc.dims_size())))};
  out.persistable = desc.persistable();
  out.parameter = desc.parameter();
  out.stop_gradient = desc.stop_gradient();
  if (desc.has_slice()) {
    const wire::SliceDesc& slice = desc.slice();
    out.slice = Slice{.of = slice.of(),
                      .whole = Dims(absl::MakeConstSpan(slice.whole().data(),
                                                        static_cast<std::size_t>(slice.whole_size()))),
                      .offset = slice.offset()};
  }
  return absl::OkStatus();
}

absl::Status Read(const wire::BlockDesc& desc, Block& out) {
  out.parent = desc.parent();
  out.vars.resize(static_cast<std::size_t>(desc.vars_size()));
  for (int i = 0; i < desc.vars_size(); ++i) {
    if (absl::Status read = Read(desc.vars(i), out.vars[static_cast<std::size_t>(i)]); !read.ok())
      return read;
  }
  out.ops.resize(static_cast<std::size_t>(desc.ops_size()));
  for (int i = 0; i < desc.ops_size(); ++i) {
    if (absl::Status read = Read(desc.ops(i), out.ops[static_cast<std::size_t>(i)]); !read.ok()) return read;
  }
  return absl::OkStatus();
}

}  // namespace

std::string Encode(const Program& program) {
  wire::ProgramDesc desc;
  desc.set_version(kProgramVersion);
  desc.set_id(program.id);
  desc.set_seed(program.seed);
  for (const Block& block : program.blocks) {
    wire::BlockDesc& out = *desc.add_blocks();
    out.set_parent(block.parent);
    for (const Var& var : block.vars) Write(var, *out.add_vars());
    for (const Op& op : block.ops) Write(op, *out.add_ops());
  }
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    desc.SerializeToCodedStream(&coded);
  }
  return bytes;
}

absl::StatusOr<Program> Decode(std::string_view bytes) {
  if (bytes.size() > kMaxProgramBytes) {
    return Malformed(StrCat("it has ", bytes.size(), " bytes, more than ", kMaxProgramBytes));
  }
  wire::ProgramDesc desc;
  if (!desc.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Malformed("not a program's bytes");
  if (desc.version() != kProgramVersion) {
    return Malformed(StrCat("version ", desc.version(), " is not ", kProgramVersion,
                            ", the one that this program reads; make it again with this release"));
  }
  Program program;
  program.id = desc.id();
  program.seed = desc.seed();
  program.blocks.resize(static_cast<std::size_t>(desc.blocks_size()));
  for (int i = 0; i < desc.blocks_size(); ++i) {
    if (absl::Status read = Read(desc.blocks(i), program.blocks[static_cast<std::size_t>(i)]); !read.ok())
      return read;
  }
  if (absl::Status valid = Validate(program); !valid.ok()) return valid;
  return program;
}

}  // namespace trainyard::graph
