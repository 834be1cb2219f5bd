# trainyard_module(NAME [LIBS lib...] [PROTOS file.proto...] [CALM])
#
# Makes the static library trainyard_NAME of every source in this folder and its subfolders. Which of our own
# folders it may use is stated in scripts/layers.txt. Sources that end in _test.cc go into NAME_tests instead
# (tests/CMakeLists.txt). CALM: the module is compiled with -Os, because its speed does not matter.

set(TRAINYARD_LAYERS "${CMAKE_SOURCE_DIR}/scripts/layers.txt")
set_property(DIRECTORY "${CMAKE_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${TRAINYARD_LAYERS}")

# The optimisation of what need not be fast. It overrides the build type's, and Debug stays as it is.
set(TRAINYARD_CALM "$<$<NOT:$<CONFIG:Debug>>:-Os>")

# Compiles the sources of a target in units of equal size, at most TRAINYARD_UNIT_BYTES: most of the time of a small source
# goes into other people's headers (docs/adr/0021). Names in unnamed namespaces must be unique within a target. A source
# with options of its own stays alone.
set(TRAINYARD_UNIT_BYTES 100000)
function(trainyard_units target)
  if(NOT TRAINYARD_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  list(SORT sources)
  set(total 0)
  foreach(source IN LISTS sources)
    get_filename_component(path "${source}" ABSOLUTE)
    file(SIZE "${path}" size)
    math(EXPR total "${total} + ${size}")
  endforeach()
  math(EXPR each "${total} / (${total} / ${TRAINYARD_UNIT_BYTES} + 1) + 1")
  set(before 0)
  foreach(source IN LISTS sources)
    get_filename_component(path "${source}" ABSOLUTE)
    file(SIZE "${path}" size)
    math(EXPR unit "(${before} + ${size} / 2) / ${each} + 1")
    math(EXPR before "${before} + ${size}")
    set_property(SOURCE "${source}" PROPERTY UNITY_GROUP "${target}_${unit}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# Sets `out` to the folders that `folder` may include and that exist so far.
function(trainyard_layers_of folder out)
  file(STRINGS "${TRAINYARD_LAYERS}" line REGEX "^${folder}:")
  if(NOT line)
    message(FATAL_ERROR "folder '${folder}' has no line in ${TRAINYARD_LAYERS}: add one that says what it may include")
  endif()
  string(REGEX REPLACE "^${folder}:[ ]*" "" names "${line}")
  separate_arguments(names)
  set(libs "")
  foreach(name IN LISTS names)
    if(EXISTS "${CMAKE_SOURCE_DIR}/src/${name}/CMakeLists.txt")
      list(APPEND libs trainyard_${name})
    endif()
  endforeach()
  set(${out} "${libs}" PARENT_SCOPE)
endfunction()

# Generates C++ for the .proto files of a module, and gRPC stubs for those that have a service, compiled without our
# warnings.
function(trainyard_module_protos module)
  set(sources "")
  foreach(proto IN LISTS ARGN)
    string(REGEX REPLACE "\\.proto$" "" stem "${proto}")
    set(stem "${CMAKE_BINARY_DIR}/gen/${module}/${stem}")
    get_filename_component(folder "${stem}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")
    set(generated ${stem}.pb.cc ${stem}.pb.h)
    set(grpc "")
    file(STRINGS ${proto} services REGEX "^service ")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${proto})
    if(services)
      list(APPEND generated ${stem}.grpc.pb.cc ${stem}.grpc.pb.h)
      set(grpc --grpc_out=${CMAKE_BINARY_DIR}/gen --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>)
    endif()
    add_custom_command(
      OUTPUT ${generated}
      COMMAND protobuf::protoc --proto_path=${CMAKE_SOURCE_DIR}/src --cpp_out=${CMAKE_BINARY_DIR}/gen ${grpc}
              ${CMAKE_CURRENT_SOURCE_DIR}/${proto}
      DEPENDS ${proto}
      VERBATIM)
    list(APPEND sources ${generated})
  endforeach()
  add_library(trainyard_${module}_protos STATIC ${sources})
  add_dependencies(trainyard_generated trainyard_${module}_protos)
  target_include_directories(trainyard_${module}_protos SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/gen)
  target_compile_options(trainyard_${module}_protos PRIVATE -w)
  target_link_libraries(trainyard_${module}_protos PUBLIC gRPC::grpc++ protobuf::libprotobuf)
endfunction()

function(trainyard_module name)
  cmake_parse_arguments(ARG "CALM" "" "LIBS;PROTOS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$|(^|/)main\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(TRANSFORM tests PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)

  trainyard_layers_of(${name} layers)
  add_library(trainyard_${name} STATIC ${sources})
  target_include_directories(trainyard_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(trainyard_${name} PUBLIC ${layers} PRIVATE trainyard_flags ${ARG_LIBS})
  trainyard_units(trainyard_${name})
  if(ARG_CALM)
    target_compile_options(trainyard_${name} PRIVATE ${TRAINYARD_CALM})
  endif()
  if(ARG_PROTOS)
    trainyard_module_protos(${name} ${ARG_PROTOS})
    target_link_libraries(trainyard_${name} PRIVATE trainyard_${name}_protos)
  endif()
  set_property(GLOBAL APPEND PROPERTY TRAINYARD_TESTED ${name})
  set_property(GLOBAL PROPERTY TRAINYARD_TESTS_${name} ${tests})
endfunction()
