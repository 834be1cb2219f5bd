# trainyard_embed(TARGET NAME FILE...)
#
# Puts the bytes of files into TARGET. A FILE is a path, or the name of an executable target, which is then
# built first. In C++:
#
#   #include "embedded/NAME.h"
#   for (const trainyard::embedded::File& file : trainyard::embedded::NAME())  // file.name, file.bytes
#
# in the order of the arguments; `name` is the file's name without its folders. The bytes are followed by a
# zero that does not count.

set(TRAINYARD_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/write_embedded.cmake")

function(trainyard_embed target name)
  set(folder "${CMAKE_BINARY_DIR}/gen/embedded")
  set(paths "")
  foreach(file IN LISTS ARGN)
    if(TARGET ${file})
      list(APPEND paths "$<TARGET_FILE:${file}>")
    else()
      get_filename_component(file "${file}" ABSOLUTE)
      list(APPEND paths "${file}")
    endif()
  endforeach()
  add_custom_command(
    OUTPUT "${folder}/${name}.cc" "${folder}/${name}.h"
    COMMAND ${CMAKE_COMMAND} "-DNAME=${name}" "-DFOLDER=${folder}" "-DFILES=${paths}" -P "${TRAINYARD_EMBED_SCRIPT}"
    DEPENDS ${ARGN} "${TRAINYARD_EMBED_SCRIPT}"
    COMMENT "Embedding ${name}"
    VERBATIM)
  add_custom_target(${target}_${name} DEPENDS "${folder}/${name}.cc" "${folder}/${name}.h")
  add_dependencies(trainyard_generated ${target}_${name})
  target_sources(${target} PRIVATE "${folder}/${name}.cc" "${folder}/${name}.h")
  target_include_directories(${target} PRIVATE "${CMAKE_BINARY_DIR}/gen")
endfunction()
