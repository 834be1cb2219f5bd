# Writes what trainyard_embed() compiles: NAME.h and NAME.cc in FOLDER, for the FILES. The assembler reads the
# files themselves (.incbin), so that a large one costs no more to compile than a small one.

file(WRITE "${FOLDER}/${NAME}.h"
"// Files that are part of the program.
#pragma once

#include <span>
#include <string_view>

#ifndef TRAINYARD_EMBEDDED_FILE
#define TRAINYARD_EMBEDDED_FILE
namespace trainyard::embedded {
struct File {
  std::string_view name;
  std::string_view bytes;
};
}  // namespace trainyard::embedded
#endif

namespace trainyard::embedded {
std::span<const File> ${NAME}();
}  // namespace trainyard::embedded
")

set(code "")
set(table "")
set(index 0)
foreach(path IN LISTS FILES)
  get_filename_component(file "${path}" NAME)
  set(symbol "trainyard_embedded_${NAME}_${index}")
  file(SHA256 "${path}" digest)  # so that a compiler cache sees that the bytes are others
  string(APPEND code
"asm(\"/* ${digest} */\\n.pushsection .rodata\\n.balign 16\\n.global ${symbol}, ${symbol}_end\\n${symbol}:\\n.incbin \\\"${path}\\\"\\n\"
    \"${symbol}_end:\\n.byte 0\\n.popsection\");
extern \"C\" const char ${symbol}[];
extern \"C\" const char ${symbol}_end[];
")
  string(APPEND table "      {\"${file}\", {${symbol}, ${symbol}_end}},\n")
  math(EXPR index "${index} + 1")
endforeach()

file(WRITE "${FOLDER}/${NAME}.cc"
"#include \"embedded/${NAME}.h\"

${code}
namespace trainyard::embedded {

std::span<const File> ${NAME}() {
  static const File files[] = {
${table}  };
  return files;
}

}  // namespace trainyard::embedded
")
