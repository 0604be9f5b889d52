# Build rules shared by every folder: compiler flags, and one function per kind of target.

find_program(TROUPE_CCACHE ccache)
if(TROUPE_CCACHE)
  # Paths relative to the source tree: another checkout of the same sources hits the same cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${TROUPE_CCACHE})
endif()

add_library(troupe_flags INTERFACE)
target_compile_options(troupe_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual
  -Wno-missing-field-initializers -Werror -fno-omit-frame-pointer)
if(TROUPE_MARCH AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  target_compile_options(troupe_flags INTERFACE -march=${TROUPE_MARCH})
endif()
# Scores must be bit-identical to IEEE arithmetic (spec 5.6): no fused multiply-add.
target_compile_options(troupe_flags INTERFACE -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(troupe_flags INTERFACE -fpch-preprocess)  # lets ccache cache users of precompiled headers
  # g++ 12 sees overlaps that are none in "text" + std::string at -O3 (GCC bug 105651).
  target_compile_options(troupe_flags INTERFACE -Wno-restrict)
endif()
if(TROUPE_SANITIZE)
  target_compile_options(troupe_flags INTERFACE -fsanitize=${TROUPE_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(troupe_flags INTERFACE -fsanitize=${TROUPE_SANITIZE})
endif()

if(TROUPE_FUZZ)
  target_compile_options(troupe_flags INTERFACE -fsanitize=fuzzer-no-link)  # what is run tells the fuzzer where it went
endif()

find_program(TROUPE_LLD ld.lld)
if(TROUPE_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# troupe_library(NAME [SOURCES ...] [PUBLIC dep ...] [PRIVATE dep ...]): a static library of this folder.
function(troupe_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
    target_link_libraries(${name} PUBLIC troupe_flags ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${CMAKE_SOURCE_DIR})
    target_link_libraries(${name} INTERFACE troupe_flags ${ARG_PUBLIC} ${ARG_PRIVATE})
  endif()
endfunction()

# troupe_test(NAME SOURCES ... LINK ...): a GoogleTest program, registered with ctest as one test.
function(troupe_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT ARG_SOURCES)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gmock GTest::gtest_main)
  target_precompile_headers(${name} PRIVATE <gtest/gtest.h> <gmock/gmock.h>)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
  if(TROUPE_SANITIZE MATCHES "address")
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT
      "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/ops/ci/lsan.supp:print_suppressions=0")
  endif()
endfunction()
