# trainyard_module(NAME [LIBS lib...] [PROTOS file.proto...])
#
# Makes the static library trainyard_NAME of every source in this folder and its subfolders. Which of
# our own folders it may use is not said here but in scripts/layers.txt. Sources that end in _test.cc
# go to the one binary of unit tests instead.

set(TRAINYARD_LAYERS "${CMAKE_SOURCE_DIR}/scripts/layers.txt")
set_property(DIRECTORY "${CMAKE_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${TRAINYARD_LAYERS}")

# Headers of others that nearly every source reads, compiled once for each target. A source still includes what it
# uses: the linter reads it without them.
set(TRAINYARD_COMMON_HEADERS <algorithm> <functional> <map> <memory> <optional> <set> <string> <string_view> <thread> <vector>
    <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/time/time.h> <boost/json.hpp>)

# Sets `out` to the folders that `folder` may include and that exist so far.
function(trainyard_layers_of folder out)
  file(STRINGS "${TRAINYARD_LAYERS}" line REGEX "^${folder}:")
  if(NOT line)
    message(FATAL_ERROR "folder '${folder}' has no line in ${TRAINYARD_LAYERS}: add one that says what it may include")
  endif()
  string(REGEX REPLACE "^${folder}:[ ]*" "" names "${line}")
  separate_arguments(names)
  if(names STREQUAL "*")
    get_property(names GLOBAL PROPERTY TRAINYARD_MODULES)
  endif()
  set(libs "")
  foreach(name IN LISTS names)
    if(EXISTS "${CMAKE_SOURCE_DIR}/src/${name}/CMakeLists.txt")
      list(APPEND libs trainyard_${name})
    endif()
  endforeach()
  set(${out} "${libs}" PARENT_SCOPE)
endfunction()

# Generates C++ (and gRPC stubs) for the .proto files of a module, compiled without our warnings.
function(trainyard_module_protos module)
  set(sources "")
  foreach(proto IN LISTS ARGN)
    string(REGEX REPLACE "\\.proto$" "" stem "${proto}")
    get_filename_component(folder "${CMAKE_BINARY_DIR}/gen/${module}/${stem}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")
    set(stem "${CMAKE_BINARY_DIR}/gen/${module}/${stem}")
    set(generated ${stem}.pb.cc ${stem}.pb.h ${stem}.grpc.pb.cc ${stem}.grpc.pb.h)
    add_custom_command(
      OUTPUT ${generated}
      COMMAND protobuf::protoc --proto_path=${CMAKE_SOURCE_DIR}/src --cpp_out=${CMAKE_BINARY_DIR}/gen
              --grpc_out=${CMAKE_BINARY_DIR}/gen --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>
              ${CMAKE_CURRENT_SOURCE_DIR}/${proto}
      DEPENDS ${proto}
      VERBATIM)
    list(APPEND sources ${stem}.pb.cc ${stem}.grpc.pb.cc)
  endforeach()
  add_library(trainyard_${module}_protos STATIC ${sources})
  add_dependencies(trainyard_generated trainyard_${module}_protos)
  target_include_directories(trainyard_${module}_protos SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/gen)
  target_compile_options(trainyard_${module}_protos PRIVATE -w)
  target_link_libraries(trainyard_${module}_protos PUBLIC gRPC::grpc++ protobuf::libprotobuf)
endfunction()

function(trainyard_module name)
  cmake_parse_arguments(ARG "" "" "LIBS;PROTOS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$|(^|/)main\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(TRANSFORM tests PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)

  trainyard_layers_of(${name} layers)
  add_library(trainyard_${name} STATIC ${sources})
  target_include_directories(trainyard_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(trainyard_${name} PUBLIC ${layers} PRIVATE trainyard_flags ${ARG_LIBS})
  target_precompile_headers(trainyard_${name} PRIVATE ${TRAINYARD_COMMON_HEADERS})
  if(ARG_PROTOS)
    trainyard_module_protos(${name} ${ARG_PROTOS})
    target_link_libraries(trainyard_${name} PRIVATE trainyard_${name}_protos)
  endif()
  set_property(GLOBAL APPEND PROPERTY TRAINYARD_MODULES ${name})
  set_property(GLOBAL APPEND PROPERTY TRAINYARD_TESTS ${tests})
endfunction()
