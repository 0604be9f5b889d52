# Pure code stays pure. A script, run with cmake -P; any violation is an error that names file and include.
#
#   cmake -DROOT=<source tree> -P purity.cmake                   checks the includes
#   cmake -DROOT=... -DSELF_TEST=<scratch folder> -P purity.cmake  plants violations in a copy: each must be caught
#   cmake -DBINARIES=<a;b> -P purity.cmake                       checks what those programs link
#
# Pure: messages/, actors/ but for two files of actors/host/, what is not RocksDB in store/, k8s-bridge/decode/, and
# the unit tests of these. The libraries' dependencies are one-way as well: messages <- store <- actors <- the rest.
cmake_minimum_required(VERSION 3.25)

# Frameworks that no pure file includes.
set(frameworks "^<(caf|nats|rocksdb|cpprest|pplx|spdlog|curl|openssl|boost|prometheus|httplib)[/.]")
# Clocks and sources of chance that no decision reads: a Turn tells the time and rolls the dice.
set(ambient "(system_clock|steady_clock|high_resolution_clock|random_device|clock_gettime|gettimeofday|std::rand)")

# check(FILES <glob under ROOT> [EXCEPT <regex>] ALLOW <regex of "project" includes> [NO_CLOCK])
function(check)
  cmake_parse_arguments(ARG "NO_CLOCK" "EXCEPT;ALLOW" "FILES" ${ARGN})
  set(found)
  foreach(glob ${ARG_FILES})
    file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${glob})
    list(APPEND found ${files})
  endforeach()
  foreach(file ${found})
    if(ARG_EXCEPT AND file MATCHES "${ARG_EXCEPT}")
      continue()
    endif()
    math(EXPR checked "${checked} + 1")
    file(STRINGS ${ROOT}/${file} includes REGEX "^[ \t]*#[ \t]*include")
    foreach(line ${includes})
      string(REGEX REPLACE "^[ \t]*#[ \t]*include[ \t]*([<\"][^>\"]*[>\"]).*" "\\1" target "${line}")
      if(target MATCHES "${frameworks}")
        list(APPEND violations "${file} includes ${target}: pure code knows no framework")
      elseif(target MATCHES "^\"" AND NOT target MATCHES "^\"(${ARG_ALLOW})")
        list(APPEND violations "${file} includes ${target}: not below it")
      endif()
    endforeach()
    if(ARG_NO_CLOCK)
      file(READ ${ROOT}/${file} text)
      if(text MATCHES "${ambient}")
        list(APPEND violations "${file} uses ${CMAKE_MATCH_1}: the Turn tells the time and gives random numbers")
      endif()
    endif()
  endforeach()
  set(checked ${checked} PARENT_SCOPE)
  set(violations ${violations} PARENT_SCOPE)
endfunction()

function(check_tree)
  set(checked 0)
  set(violations)
  check(FILES messages/*.hpp messages/*.cpp ALLOW "messages/" NO_CLOCK)
  check(FILES store/*.hpp store/*.cpp EXCEPT "^store/(rocksdb_|testing/)"
    ALLOW "messages/|store/(family|journal|memory_store|store|writes)\\.hpp")
  check(FILES actors/*.hpp actors/*.cpp EXCEPT "^actors/host/"
    ALLOW "messages/|actors/[a-gi-z]|actors/host/(turn|owner)\\.hpp|store/(family|journal|writes)\\.hpp" NO_CLOCK)
  check(FILES actors/host/*.hpp actors/host/*.cpp EXCEPT "^actors/host/(runtime|scheduler)\\.cpp$"
    ALLOW "messages/|actors/host/|store/(family|journal|store|writes)\\.hpp")
  check(FILES k8s-bridge/decode/*.hpp k8s-bridge/decode/*.cpp ALLOW "messages/|k8s-bridge/" NO_CLOCK)
  foreach(unit messages store placement node report host)
    check(FILES unit/${unit}/*.hpp unit/${unit}/*.cpp EXCEPT "^unit/store/rocksdb_"
      ALLOW "messages/|store/|actors/|unit/${unit}/")
  endforeach()
  set(checked ${checked} PARENT_SCOPE)
  set(violations ${violations} PARENT_SCOPE)
endfunction()

function(self_test)
  # A small tree: one clean file, then one violation at a time.
  set(ROOT ${SELF_TEST})
  set(cases
    "actors/node/owner.cpp|#include <caf/all.hpp>"
    "actors/placement/cycle.cpp|  #  include <nats/nats.h>"
    "actors/report/deep/er.hpp|#include <rocksdb/db.h>"
    "actors/node/a.cpp|#include <spdlog/spdlog.h>"
    "actors/node/b.cpp|#include \"k8s-bridge/http.hpp\""
    "actors/node/c.cpp|#include \"actors/host/runtime.hpp\""
    "actors/node/d.cpp|auto t = std::chrono::steady_clock::now()"
    "actors/host/partition.cpp|#include <caf/actor.hpp>"
    "messages/message.cpp|#include <cpprest/http_client.h>"
    "messages/error.hpp|#include \"actors/node/ledger.hpp\""
    "store/store.hpp|#include <rocksdb/slice.h>"
    "unit/node/node_test.cpp|#include <nats.h>"
    "k8s-bridge/decode/pod.cpp|#include <curl/curl.h>")
  foreach(case ${cases})
    string(REGEX REPLACE "\\|.*" "" file "${case}")
    string(REGEX REPLACE "^[^|]*\\|" "" line "${case}")
    file(REMOVE_RECURSE ${ROOT})
    file(WRITE ${ROOT}/actors/host/runtime.cpp "#include <caf/all.hpp>\n")
    file(WRITE ${ROOT}/actors/node/ledger.hpp "#include <vector>\n#include \"messages/uid.hpp\"\n")
    check_tree()
    if(violations OR NOT checked EQUAL 1)
      message(FATAL_ERROR "a clean tree does not pass (${checked} files): ${violations}")
    endif()
    file(WRITE ${ROOT}/${file} "// A file.\n${line}\n")
    check_tree()
    list(LENGTH violations count)
    if(NOT count EQUAL 1 OR NOT violations MATCHES "^${file} ")
      message(FATAL_ERROR "a planted violation is not caught: ${file}: ${line}")
    endif()
  endforeach()
  file(REMOVE_RECURSE ${ROOT})
  list(LENGTH cases count)
  message(STATUS "${count} planted violations caught")
endfunction()

function(check_links)
  set(violations)
  foreach(binary ${BINARIES})
    execute_process(COMMAND ldd ${binary} OUTPUT_VARIABLE libraries RESULT_VARIABLE failed)
    if(failed)
      message(FATAL_ERROR "ldd cannot read ${binary}: build it first")
    endif()
    string(REGEX MATCHALL "lib(caf|nats|rocksdb|cpprest|spdlog|curl|ssl|boost|prometheus)[^ ]*" impure "${libraries}")
    foreach(library ${impure})
      list(APPEND violations "${binary} links ${library}")
    endforeach()
  endforeach()
  set(violations ${violations} PARENT_SCOPE)
endfunction()

if(BINARIES)
  check_links()
elseif(SELF_TEST)
  self_test()
else()
  check_tree()
  message(STATUS "${checked} pure files checked")
  if(checked EQUAL 0)
    message(FATAL_ERROR "no pure file under ${ROOT}")
  endif()
endif()
if(violations)
  list(JOIN violations "\n  " text)
  message(FATAL_ERROR "pure code is not pure:\n  ${text}\n")
endif()
