# One function for each kind of target. They carry the rules: the language mode, the warnings, where things are put.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

find_program(FOPD_CCACHE ccache)
if(FOPD_CCACHE)
    # ccache takes precompiled headers only when told not to mind what they define. It does mind the time stamps of what is
    # included: a source that is edited while it is compiled must not be kept.
    set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${FOPD_CCACHE})
endif()

option(FOPD_FUZZ "Build the fuzz targets (clang with libFuzzer)" OFF)

# Links the tests, if it is installed: ld takes five times as long for 150 programs of up to 200 MB. What is released is
# linked by the linker of the system.
find_program(FOPD_MOLD mold)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
    # GCC searches its memory for garbage each time it has grown by a half or so, which is 10 to 18 % of the time for a unit of a
    # whole folder. Without that it takes up to 300 MiB more.
    add_compile_options("SHELL:--param ggc-min-expand=1000 --param ggc-min-heapsize=4000000")
    if(CMAKE_UNITY_BUILD)
        # What stands in a source looks to it as if it stood in a header.
        add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
    endif()
endif()

# What is released is hardened, as Debian does it: stacks and the buffers of libc calls are checked, and what the loader
# fills in is read-only afterwards. The sanitizers check more, and -D_FORTIFY_SOURCE hides calls from them.
if(CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$" AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    set(FOPD_HARDENED ON)
    add_compile_options(-fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
    add_link_options(LINKER:-z,relro LINKER:-z,now)
endif()

add_library(fopd_warnings INTERFACE)
add_library(fopd::warnings ALIAS fopd_warnings)
# GCC 12 sees uninitialised members in nested std::optional where there are none; the sanitizers look
# for real ones.
target_compile_options(fopd_warnings INTERFACE
    -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
    $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond -Wlogical-op -Wno-maybe-uninitialized>)

# What most sources include of the standard library. Where sources are compiled together it is compiled once, which takes
# as long as one and a half of the 200 times that it would be read otherwise. `dev` does without: there each source finds
# what it includes itself, or does not compile. A precompiled header fits sources with the same options only: those of
# libfopd are position-independent.
set(FOPD_SHAREABLE POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
if(CMAKE_UNITY_BUILD)
    set(FOPD_STANDARD_HEADERS
        <algorithm> <array> <atomic> <bit> <charconv> <chrono> <coroutine> <cstddef> <cstdint> <cstring> <deque>
        <expected> <functional> <limits> <map> <memory> <mutex> <optional> <set> <span> <string> <string_view>
        <system_error> <tuple> <unordered_map> <utility> <variant> <vector>)
    foreach(precompiled fopd_standard fopd_standard_pic)
        add_library(${precompiled} OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cc)
        target_precompile_headers(${precompiled} PRIVATE ${FOPD_STANDARD_HEADERS})
    endforeach()
    set_target_properties(fopd_standard_pic PROPERTIES ${FOPD_SHAREABLE})
endif()

# fopd_precompile(<target>)
# For what is compiled with the options of the preset.
function(fopd_precompile target)
    if(CMAKE_UNITY_BUILD)
        target_precompile_headers(${target} REUSE_FROM fopd_standard)
    endif()
endfunction()

# fopd_make_shareable(<target...>)
# For what becomes a part of a shared library, of which only the names in its map are seen from outside.
function(fopd_make_shareable)
    set_target_properties(${ARGN} PROPERTIES ${FOPD_SHAREABLE})
    if(CMAKE_UNITY_BUILD)
        foreach(target IN LISTS ARGN)
            target_precompile_headers(${target} REUSE_FROM fopd_standard_pic)
        endforeach()
    endif()
endfunction()

# fopd_add_library(<folder> HEADERS <h...> SOURCES <cc...> DEPENDS <targets...> [THIRD_PARTY <targets...>])
# One static library per top-level folder, named fopd::<folder>. DEPENDS is the whole allow-list of folders;
# THIRD_PARTY libraries are private to the folder that owns them.
function(fopd_add_library folder)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;SOURCES;DEPENDS;THIRD_PARTY")
    add_library(fopd_${folder} STATIC ${arg_SOURCES})
    add_library(fopd::${folder} ALIAS fopd_${folder})
    target_sources(fopd_${folder} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${arg_HEADERS})
    set_target_properties(fopd_${folder} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
    target_link_libraries(fopd_${folder} PUBLIC ${arg_DEPENDS} PRIVATE fopd::warnings ${arg_THIRD_PARTY})
    fopd_precompile(fopd_${folder})
endfunction()

# Every header that the build makes: what reads the sources without building them asks for this first.
add_custom_target(fopd_generated)

# fopd_add_flatbuffers(<folder> <schema.fbs>)
# Lets the sources of fopd::<folder> include "<folder>/<schema>_generated.h". It is made by the build, since it
# only compiles with the FlatBuffers that made it; as a system header, since the warnings in it are not ours. The
# fields of its tables can be visited by their numbers.
function(fopd_add_flatbuffers folder schema)
    cmake_path(GET schema STEM stem)
    set(generated ${PROJECT_BINARY_DIR}/generated/${folder})
    set(header ${generated}/${stem}_generated.h)
    add_custom_command(
        OUTPUT ${header}
        COMMAND ${FOPD_FLATC} --cpp --cpp-std c++17 --cpp-static-reflection -o ${generated}
            ${CMAKE_CURRENT_SOURCE_DIR}/${schema}
        DEPENDS ${schema}
        VERBATIM)
    add_custom_target(fopd_${folder}_generated DEPENDS ${header})
    add_dependencies(fopd_generated fopd_${folder}_generated)
    target_sources(fopd_${folder} PRIVATE ${header})
    target_include_directories(fopd_${folder} SYSTEM PRIVATE ${PROJECT_BINARY_DIR}/generated)
endfunction()

# fopd_add_program(<name> SOURCES <cc...> DEPENDS <targets...>)
# A program that is installed, in bin/.
function(fopd_add_program name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
    add_executable(${name} ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE ${arg_DEPENDS} fopd::warnings)
    fopd_precompile(${name})
endfunction()

# fopd_compile_soon(<target>)
# For what need not be fast: it is not optimised, which takes half the time to compile.
function(fopd_compile_soon target)
    # What checks the sizes of buffers needs the optimiser.
    target_compile_options(${target} PRIVATE -O0 -U_FORTIFY_SOURCE)
    # Only a header that was compiled with -O0, too, fits.
    get_target_property(precompiled ${target} PRECOMPILE_HEADERS_REUSE_FROM)
    if(precompiled STREQUAL "fopd_standard")
        set_target_properties(${target} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
    endif()
endfunction()

# fopd_compile_test(<target>)
# For tests and what they share: what they test is optimised as the preset says; they themselves are not.
function(fopd_compile_test target)
    fopd_compile_soon(${target})
    target_link_libraries(${target} PRIVATE fopd::catch)
    target_precompile_headers(${target} REUSE_FROM fopd_catch_main)
endfunction()

# fopd_compile_alone(<sources...>)
# For what cannot share a translation unit with its neighbours: most presets compile many sources of a target at a
# time, which takes half as long. Names in anonymous namespaces are therefore different within a folder.
function(fopd_compile_alone)
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# The programs of all tests that run no program of ours, and of those labelled `input`: tests of the folders that read
# bytes of strangers.
add_custom_target(code_tests)
add_custom_target(input_tests)

# fopd_add_test(<area> [OPTIMISED] SOURCES <cc...> DEPENDS <targets...> [LABELS <label...>] [ARGUMENTS <arg...>])
# One Catch2 program test_<area> and one CTest entry of that name. OPTIMISED: what the tests compute themselves takes longer than
# to optimise it.
function(fopd_add_test area)
    cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIMISED" "" "SOURCES;DEPENDS;LABELS;ARGUMENTS")
    add_executable(test_${area} ${arg_SOURCES} $<TARGET_OBJECTS:fopd_catch_main>)
    target_link_libraries(test_${area} PRIVATE ${arg_DEPENDS} fopd::warnings)
    if(arg_OPTIMISED)
        target_link_libraries(test_${area} PRIVATE fopd::catch)
        fopd_precompile(test_${area})
    else()
        fopd_compile_test(test_${area})
    endif()
    add_test(NAME ${area} COMMAND test_${area} ${arg_ARGUMENTS} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${area} PROPERTIES TIMEOUT 1200 LABELS "${arg_LABELS}")
    add_dependencies(code_tests test_${area})
    if(input IN_LIST arg_LABELS)
        add_dependencies(input_tests test_${area})
    endif()
endfunction()

# fopd_add_fuzz(<name> SOURCES <cc...> DEPENDS <targets...>)
# With the preset `fuzz`, a libFuzzer target fuzz_<name>; its target `fuzz_all` builds all of them. With the others, a
# function fuzz_<name> of the test that fopd_add_fuzz_inputs() adds.
function(fopd_add_fuzz name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
    if(NOT FOPD_FUZZ)
        fopd_compile_alone(${arg_SOURCES})
        set_property(SOURCE ${arg_SOURCES} APPEND PROPERTY COMPILE_DEFINITIONS LLVMFuzzerTestOneInput=fuzz_${name})
        set_property(DIRECTORY APPEND PROPERTY FOPD_FUZZ_NAMES ${name})
        set_property(DIRECTORY APPEND PROPERTY FOPD_FUZZ_SOURCES ${arg_SOURCES})
        set_property(DIRECTORY APPEND PROPERTY FOPD_FUZZ_DEPENDS ${arg_DEPENDS})
        return()
    endif()
    add_executable(fuzz_${name} ${arg_SOURCES})
    target_link_libraries(fuzz_${name} PRIVATE ${arg_DEPENDS} fopd::warnings)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzz_all fuzz_${name})
endfunction()

# fopd_add_fuzz_inputs(<test.cc>)
# The test fuzz_inputs, which gives the kept inputs to the functions of all fuzz targets of this directory. It includes
# the list of these, fuzz_targets.inc.
function(fopd_add_fuzz_inputs source)
    if(FOPD_FUZZ)
        return()
    endif()
    get_property(names DIRECTORY PROPERTY FOPD_FUZZ_NAMES)
    get_property(sources DIRECTORY PROPERTY FOPD_FUZZ_SOURCES)
    get_property(depends DIRECTORY PROPERTY FOPD_FUZZ_DEPENDS)
    list(REMOVE_DUPLICATES depends)
    list(TRANSFORM names REPLACE "(.+)" "FOPD_FUZZ_TARGET(\\1)")
    list(JOIN names "\n" rows)
    file(CONFIGURE OUTPUT fuzz_targets.inc CONTENT "@rows@\n" @ONLY)
    fopd_add_test(fuzz_inputs SOURCES ${source} ${sources} DEPENDS ${depends})
    target_include_directories(test_fuzz_inputs PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
endfunction()

# fopd_set_version(<source>)
# Defines FOPD_VERSION for one source: the release, and the commit where there is a repository. A new
# commit configures anew.
function(fopd_set_version source)
    set(version ${PROJECT_VERSION})
    find_package(Git QUIET)
    if(Git_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
        execute_process(COMMAND ${GIT_EXECUTABLE} -C ${PROJECT_SOURCE_DIR} rev-parse --short HEAD
                        OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
        execute_process(COMMAND ${GIT_EXECUTABLE} -C ${PROJECT_SOURCE_DIR} rev-parse --git-path logs/HEAD
                        OUTPUT_VARIABLE head_log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
        if(commit)
            string(APPEND version " (${commit})")
        endif()
        if(head_log)
            get_filename_component(head_log ${head_log} ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
            set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${head_log})
        endif()
    endif()
    set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS "FOPD_VERSION=\"${version}\"")
endfunction()
