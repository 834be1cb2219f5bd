// Random numbers by element: each is a function of a seed and of the element's number, and of nothing before
// it. So a part of a tensor can be made alone, on any machine and by any number of threads, and has the
// values that it has in the whole.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainyard::graph {

// Of element `index`: in [0, 1), and normally distributed with mean 0 and deviation 1.
double UniformAt(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);
double NormalAt(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

// A stream's number from a name.
std::uint64_t StreamOf(const char* name, std::size_t size);

}  // namespace trainyard::graph
