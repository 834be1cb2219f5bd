#include "kv/disk/record_codec.h"

#include <bit>
#include <cstring>

#include "base/crc32c.h"

namespace trainyard::kv {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian and read in place");

template <typename T>
void Put(char* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

template <typename T>
T Take(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::uint32_t Checksum(std::string_view record, std::uint32_t segment, std::uint64_t offset) {
  char place[12];
  Put(place, segment);
  Put(place + 4, offset);
  return Crc32c(record.substr(4), Crc32c({place, sizeof place}));
}

std::size_t Padded(std::size_t length) { return (length + 7) & ~std::size_t{7}; }

bool Known(std::uint8_t kind) {
  return kind >= static_cast<std::uint8_t>(Record::Kind::kPut) &&
         kind <= static_cast<std::uint8_t>(Record::Kind::kBase);
}

}  // namespace

std::size_t EncodedLength(const Record& record) {
  return Padded(kRecordHeader + record.key.size() + record.value.size());
}

void Encode(const Record& record, const RecordPlace& place, std::string& out) {
  const std::size_t start = out.size();
  const std::size_t length = EncodedLength(record);
  out.resize(start + length);
  char* at = out.data() + start;
  Put(at + 4, static_cast<std::uint32_t>(length));
  Put(at + 8, place.group);
  Put(at + 16, static_cast<std::uint8_t>(record.kind));
  Put(at + 17, static_cast<std::uint8_t>(record.ends_txn ? 1 : 0));
  Put(at + 20, record.sub);
  Put(at + 24, record.revision);
  Put(at + 32, record.create_revision);
  Put(at + 40, record.kind == Record::Kind::kLeaseGrant ? record.ttl_ms : record.version);
  Put(at + 48, record.lease);
  Put(at + 56, static_cast<std::uint32_t>(record.key.size()));
  Put(at + 60, static_cast<std::uint32_t>(record.value.size()));
  out.replace(start + kRecordHeader, record.key.size(), record.key);
  out.replace(start + kRecordHeader + record.key.size(), record.value.size(), record.value);
  Put(at, Checksum({at, length}, place.segment, place.offset));
}

absl::StatusOr<DecodedRecord> Decode(std::string_view bytes, std::uint32_t segment, std::uint64_t offset) {
  if (bytes.size() < kRecordHeader) return absl::DataLossError("too short for a record");
  const char* at = bytes.data();
  const auto length = Take<std::uint32_t>(at + 4);
  const auto kind = Take<std::uint8_t>(at + 16);
  const std::size_t key_length = Take<std::uint32_t>(at + 56);
  const std::size_t value_length = Take<std::uint32_t>(at + 60);
  // Before the checksum, which is dear where one searches through garbage for a record.
  if (length > bytes.size() || length != Padded(kRecordHeader + key_length + value_length) || !Known(kind)) {
    return absl::DataLossError("its lengths or its kind make no sense");
  }
  bytes = bytes.substr(0, length);
  if (Take<std::uint32_t>(at) != Checksum(bytes, segment, offset))
    return absl::DataLossError("its checksum is wrong");

  DecodedRecord decoded;
  decoded.length = length;
  decoded.group = Take<std::uint64_t>(at + 8);
  Record& record = decoded.record;
  record.kind = static_cast<Record::Kind>(kind);
  record.ends_txn = (Take<std::uint8_t>(at + 17) & 1) != 0;
  record.sub = Take<std::uint32_t>(at + 20);
  record.revision = Take<std::int64_t>(at + 24);
  record.create_revision = Take<std::int64_t>(at + 32);
  (record.kind == Record::Kind::kLeaseGrant ? record.ttl_ms : record.version) = Take<std::int64_t>(at + 40);
  record.lease = Take<std::int64_t>(at + 48);
  record.key = bytes.substr(kRecordHeader, key_length);
  record.value = bytes.substr(kRecordHeader + key_length, value_length);
  return decoded;
}

}  // namespace trainyard::kv
