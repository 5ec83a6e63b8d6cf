# Compiler settings and the two ways to declare a target.
include(GoogleTest)

find_program(CCACHE ccache)
if(CCACHE)
  # Precompiled headers and ccache agree only when ccache ignores their time stamps. Paths inside the checkout count
  # relatively, so that a second checkout finds what the first one has compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=12G ${CCACHE})
endif()

add_library(weir_flags INTERFACE)
target_compile_options(weir_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers
  -Wno-mismatched-new-delete  # GCC 12 finds one in Asio's coroutine frames that is none
  -fpch-preprocess)
target_compile_definitions(weir_flags INTERFACE
  BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION)
if(WEIR_WERROR)
  target_compile_options(weir_flags INTERFACE -Werror)
endif()
if(WEIR_SANITIZE)
  target_compile_options(weir_flags INTERFACE -fsanitize=${WEIR_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(weir_flags INTERFACE -fsanitize=${WEIR_SANITIZE})
  if(WEIR_SANITIZE MATCHES undefined)
    # These four checks quadruple the build time of coroutine code and have found nothing that ASan would not.
    target_compile_options(weir_flags INTERFACE
      -fno-sanitize-recover=all -fno-sanitize=null,alignment,object-size,vptr)
  endif()
endif()

# weir_library(NAME DEPENDS... [FOLDERS SUBFOLDERS...]): every .cpp of this folder, and of the subfolders named, except
# tests; headers under include/. The *_test.cpp files join the unit tests.
function(weir_library name)
  cmake_parse_arguments(arg "" "" "FOLDERS" ${ARGN})
  list(TRANSFORM arg_FOLDERS APPEND "/*.cpp")
  file(GLOB sources CONFIGURE_DEPENDS *.cpp ${arg_FOLDERS})
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  if(sources)
    add_library(${name} STATIC ${sources})
    target_include_directories(${name} PUBLIC include)
    target_link_libraries(${name} PUBLIC weir_flags ${arg_UNPARSED_ARGUMENTS})
    if(NOT name STREQUAL weir_asio)
      target_precompile_headers(${name} REUSE_FROM weir_asio)
    endif()
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE include)
    target_link_libraries(${name} INTERFACE weir_flags ${arg_UNPARSED_ARGUMENTS})
  endif()
  if(tests)
    set_property(GLOBAL APPEND PROPERTY WEIR_UNIT_TESTS ${tests})
    set_property(GLOBAL APPEND PROPERTY WEIR_UNIT_LIBS ${name})
    set_property(GLOBAL PROPERTY WEIR_TESTS_OF_${name} ${tests})
  endif()
endfunction()

# weir_executable(NAME SOURCES... LINK LIBS...)
function(weir_executable name)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE weir_flags ${arg_LINK})
  target_precompile_headers(${name} REUSE_FROM weir_asio)
endfunction()
