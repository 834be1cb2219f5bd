// Programs as text, for people and for tests that compare whole programs.
//
//   program mlp seed 7
//   block 0
//     param w f32[784, 128]
//     var   h f32[-1, 128]
//     forward  mul(X=x, Y=w) -> Out=h {x_num_col_dims=1}
#pragma once

#include <string>

#include "graph/ir/program.h"

namespace trainyard::graph {

std::string Print(const Attr& attr);
// One line without its newline.
std::string Print(const Op& op);
std::string Print(const Var& var);
std::string Print(const Program& program);

}  // namespace trainyard::graph
