// Numbers of 32 bits as they lie in files.
#pragma once

#include <cstdint>
#include <string>

namespace trainyard::data {

inline std::uint32_t ByteAt(const char* bytes, int i) { return static_cast<unsigned char>(bytes[i]); }

inline std::uint32_t LoadLittle32(const char* bytes) {
  return ByteAt(bytes, 0) | ByteAt(bytes, 1) << 8U | ByteAt(bytes, 2) << 16U | ByteAt(bytes, 3) << 24U;
}

inline std::uint32_t LoadBig32(const char* bytes) {
  return ByteAt(bytes, 3) | ByteAt(bytes, 2) << 8U | ByteAt(bytes, 1) << 16U | ByteAt(bytes, 0) << 24U;
}

inline void StoreLittle32(std::uint32_t number, char* bytes) {
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<char>(number >> (8 * i));
}

inline void AppendLittle32(std::uint32_t number, std::string& out) {
  char bytes[4];
  StoreLittle32(number, bytes);
  out.append(bytes, sizeof bytes);
}

}  // namespace trainyard::data
