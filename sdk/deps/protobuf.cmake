# Protocol Buffers, lite runtime: target inlaid_protobuf_lite, and inlaid_protobuf_generate() for .proto files.
#
# By default the runtime is built from the distribution's own source (fetch_protobuf), position-independent and hidden, so
# that libinlaid.so carries a copy which no other protobuf of the process can meet. INLAID_SYSTEM_PROTOBUF=ON takes the
# system's library instead (platforms without apt; the system's static library must then be position-independent, and its
# messages about malformed text go to stderr).

include_guard(GLOBAL)

option(INLAID_SYSTEM_PROTOBUF "Link the system's protobuf-lite instead of building it from source" OFF)

find_program(INLAID_PROTOC protoc REQUIRED)

if(INLAID_SYSTEM_PROTOBUF)
  find_package(Protobuf REQUIRED)
  add_library(inlaid_protobuf_lite INTERFACE)
  target_link_libraries(inlaid_protobuf_lite INTERFACE protobuf::libprotobuf-lite)
else()
  set(INLAID_PROTOBUF_SOURCE "" CACHE PATH
      "Folder with src/google/protobuf and cmake/libprotobuf-lite.cmake; empty = fetched into the user's cache")
  set(protobuf_SOURCE_DIR "${INLAID_PROTOBUF_SOURCE}")
  if(NOT protobuf_SOURCE_DIR)
    execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/fetch_protobuf
                    OUTPUT_VARIABLE protobuf_SOURCE_DIR OUTPUT_STRIP_TRAILING_WHITESPACE
                    RESULT_VARIABLE fetched)
    if(NOT fetched EQUAL 0)
      message(FATAL_ERROR "The source of protobuf could not be fetched. Give its folder with -DINLAID_PROTOBUF_SOURCE=..., "
                          "or use the system's library with -DINLAID_SYSTEM_PROTOBUF=ON.")
    endif()
  endif()

  # protobuf's own list of the runtime's files, of which only the list is wanted here.
  file(STRINGS ${protobuf_SOURCE_DIR}/cmake/libprotobuf-lite.cmake files REGEX "\\.cc$")
  list(TRANSFORM files REPLACE ".*/src/(google/protobuf/.*\\.cc)$" "${protobuf_SOURCE_DIR}/src/\\1")
  add_library(inlaid_protobuf_lite STATIC ${files})
  target_include_directories(inlaid_protobuf_lite SYSTEM PUBLIC ${protobuf_SOURCE_DIR}/src)
  # Level 4 is above FATAL: the runtime never prints. It reports through return values, and FATAL still throws.
  target_compile_definitions(inlaid_protobuf_lite PRIVATE HAVE_PTHREAD=1 GOOGLE_PROTOBUF_MIN_LOG_LEVEL=4)
  target_compile_options(inlaid_protobuf_lite PRIVATE -w)
  target_link_libraries(inlaid_protobuf_lite PUBLIC Threads::Threads)
endif()

# inlaid_protobuf_generate(<out variable> <root> <file>...): C++ from .proto files, whose paths below <root> are the names
# under which they import each other. Sets the variable to the generated .cc files, below ${CMAKE_CURRENT_BINARY_DIR}/proto.
function(inlaid_protobuf_generate out root)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/proto)
  file(MAKE_DIRECTORY ${folder})
  set(sources)
  foreach(file ${ARGN})
    string(REGEX REPLACE "\\.proto$" ".pb" stem ${file})
    add_custom_command(
      OUTPUT ${folder}/${stem}.cc ${folder}/${stem}.h
      COMMAND ${INLAID_PROTOC} --proto_path=${root} --cpp_out=${folder} ${root}/${file}
      DEPENDS ${root}/${file} VERBATIM)
    list(APPEND sources ${folder}/${stem}.cc)
  endforeach()
  set(${out} ${sources} PARENT_SCOPE)
endfunction()
