// Programs, tables and messages of graph jobs that nobody meant: none may crash whoever reads them, and what
// is read is the same after it has been written and read again.
//
// The first byte of an input says what the rest is taken for.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "graph/ir/codec.h"
#include "graph/ir/dump.h"
#include "graph/op/check.h"
#include "graph/pass/transpile.h"
#include "ps/inbox.h"
#include "ps/lead.h"
#include "ps/rpc/frame.h"
#include "ps/rpc/tensor_parts.h"
#include "ps/tables.h"

namespace trainyard {
namespace {

void ReadProgram(std::string_view bytes) {
  const absl::StatusOr<graph::Program> program = graph::Decode(bytes);
  if (!program.ok()) return;
  const std::string encoded = graph::Encode(*program);
  const absl::StatusOr<graph::Program> again = graph::Decode(encoded);
  TY_CHECK(again.ok() && *again == *program, "a program is the same when it is read again");
  TY_CHECK(graph::Encode(*again) == encoded, "equal programs have equal bytes");
  TY_CHECK(!graph::Print(*program).empty(), "a program is printed");
  if (!graph::CheckProgram(*program).ok()) return;
  (void)graph::Transpile({.startup = graph::Program(), .main = *program}, {.trainers = 2, .pservers = 2});
}

template <typename T>
void ReadTable(std::string_view text, absl::StatusOr<T> (*decode)(std::string_view),
               std::string (*encode)(const T&)) {
  const absl::StatusOr<T> value = decode(text);
  if (!value.ok()) return;
  const absl::StatusOr<T> again = decode(encode(*value));
  TY_CHECK(again.ok() && *again == *value, "a value of a table is the same when it is read again");
}

void ReadAccount(std::string_view bytes) {
  const absl::StatusOr<ps::LeadState> state = ps::Lead::Load(bytes);
  if (!state.ok()) return;
  ps::Lead lead(*state);
  TY_CHECK(ps::Lead::Load(lead.Save()).ok(), "an account is read again");
  for (int trainer = 0; trainer < 3; ++trainer) {
    if (!lead.Join(trainer, 1, state->records).ok()) continue;
    (void)lead.NextShare(trainer, 1);
  }
  (void)lead.Complete();
  (void)lead.WaitsFor();
}

// As a pserver takes a part of a gradient of twelve numbers.
void ReadMessage(std::string_view bytes) {
  const grpc::Slice slice(bytes.data(), bytes.size());
  const grpc::ByteBuffer buffer(&slice, 1);
  ps::Unpacked message;
  if (!ps::Unpacked::Parse(buffer, message).ok()) return;
  ps::wire::TransferRequest request;
  if (!message.Head(request) || request.parts().empty()) return;
  const ps::wire::Part& head = request.parts(0);
  if (head.length() < 0 || static_cast<std::size_t>(head.length()) > message.payload_size()) return;
  const ps::GradientPart part{
      .caller = request.caller(), .step = request.step(), .part = head, .message = message};
  const graph::VarType type{.data_type = graph::DataType::kFloat32, .dims = {4, 3}};
  graph::Value value = graph::Tensor(type.data_type, type.dims);
  ps::Inbox inbox;
  const absl::StatusOr<ps::Inbox::Verdict> verdict = inbox.Expect(part, type, value);
  if (!verdict.ok() || *verdict != ps::Inbox::Verdict::kWanted) return;
  inbox.Arrived(part, ps::Inbox::Copy(part, value).ok());
  inbox.Release();
  TY_CHECK(ps::BytesOf(value) <= (std::size_t{1} << 20), "no more room is made than the variable can need");
}

}  // namespace
}  // namespace trainyard

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trainyard;
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'p':
      ReadProgram(rest);
      break;
    case 'm':
      ReadTable(rest, ps::DecodeMeta, ps::EncodeMeta);
      break;
    case 'g':
      ReadTable(rest, ps::DecodePod, ps::EncodePod);
      break;
    case 'c':
      ReadTable(rest, ps::DecodeCheckpoints, ps::EncodeCheckpoints);
      break;
    case 'o':
      ReadTable(rest, ps::DecodeOutput, ps::EncodeOutput);
      break;
    case 'a':
      ReadAccount(rest);
      break;
    case 'f':
      ReadMessage(rest);
      break;
    default:
      break;
  }
  return 0;
}
