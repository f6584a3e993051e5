# Run as a script with OUTPUT, VERSION, OPTIONS (the compiler and its options) and SOURCES (a file with the paths of
# sources, one in a line). Writes a header with a text that differs when any of them does; the file is left alone when it
# would stay the same.
file(STRINGS ${SOURCES} sources)
list(SORT sources)
set(sums "${OPTIONS}")
foreach(source IN LISTS sources)
    file(SHA256 ${source} sum)
    string(APPEND sums " ${sum}")
endforeach()
string(SHA256 sum "${sums}")
string(SUBSTRING ${sum} 0 16 sum)
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#pragma once

namespace fopd::fabric {

// From which sources, by which compiler and with which options this was built.
inline constexpr const char* kBuild = "@VERSION@ @sum@";

}  // namespace fopd::fabric
]])
