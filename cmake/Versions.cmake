# Third-party libraries, and every difference between the versions of Debian 12 and Debian 13.
# C++ code that must tell versions apart includes what is decided here; it does not test versions itself.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

pkg_check_modules(liburing REQUIRED IMPORTED_TARGET liburing>=2.3)
pkg_check_modules(yaml_cpp REQUIRED IMPORTED_TARGET yaml-cpp>=0.7)
pkg_check_modules(libsystemd REQUIRED IMPORTED_TARGET libsystemd)
pkg_check_modules(libmicrohttpd REQUIRED IMPORTED_TARGET libmicrohttpd>=0.9.70)
pkg_check_modules(libfabric REQUIRED IMPORTED_TARGET libfabric>=1.17)
pkg_check_modules(libsodium REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(libcrypto REQUIRED IMPORTED_TARGET libcrypto>=3.0)
pkg_check_modules(lmdb REQUIRED IMPORTED_TARGET lmdb>=0.9.24)
pkg_check_modules(flatbuffers REQUIRED IMPORTED_TARGET flatbuffers)
find_program(FOPD_FLATC flatc REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json 3 REQUIRED)

# Catch2: version 2 (Debian 12) has one header and no library but a main we compile; version 3 (Debian 13) has both.
find_package(Catch2 REQUIRED)
add_library(fopd_catch INTERFACE)
add_library(fopd::catch ALIAS fopd_catch)
target_include_directories(fopd_catch INTERFACE ${PROJECT_SOURCE_DIR})
if(Catch2_VERSION VERSION_LESS 3)
    target_compile_definitions(fopd_catch INTERFACE FOPD_CATCH_VERSION=2)
else()
    target_compile_definitions(fopd_catch INTERFACE FOPD_CATCH_VERSION=3)
    target_link_libraries(fopd_catch INTERFACE Catch2::Catch2)
endif()
if(TARGET Catch2::Catch2)
    target_link_libraries(fopd_catch INTERFACE Catch2::Catch2)
endif()
