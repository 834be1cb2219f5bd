// What tests of reading records share: files, and the `read` operators that name them.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "data/data_testing.h"
#include "graph/build/builder.h"
#include "graph/ir/program.h"

namespace trainyard::ps {

// As Builder::Read() makes it.
inline graph::Op ReadOp(const graph::ReadOptions& options) {
  graph::Builder net("net");
  net.Read(options);
  const auto programs = net.Finish();
  TY_CHECK(programs.ok(), programs.status().ToString());
  return programs->main.main().ops.front();
}

inline void AppendBig32(std::uint32_t number, std::string& out) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(number >> shift);
}

// `type` is the format's own number; the first of the dims is how many items there are.
inline std::string IdxFile(char type, const std::vector<std::uint32_t>& dims, std::string_view elements) {
  std::string file = {0, 0, type, static_cast<char>(dims.size())};
  for (const std::uint32_t dim : dims) AppendBig32(dim, file);
  return file.append(elements);
}

template <typename T>
std::string Raw(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

}  // namespace trainyard::ps
