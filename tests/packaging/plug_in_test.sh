#!/bin/bash
# Goal: libfabric is needed by the plug-in and by nothing else; the plug-in shows its interface only; of what program and
#       plug-in both have, no variable is one that must exist once.
# Method: readelf and nm on the plug-in, and on the programs and the library that load it.
#
#   plug_in_test.sh PLUG_IN FILE...
set -u
export LC_ALL=C

plug_in=$1
shift
failures=0

# is WHAT ACTUAL EXPECTED
is() {
    [[ $2 == "$3" ]] || {
        printf '%s: is\n%s\nand should be\n%s\n' "$1" "$2" "$3" >&2
        failures=$((failures + 1))
    }
}

# needed FILE: the libraries it is linked with that are ours or libfabric.
needed() {
    readelf --wide --dynamic "$1" | sed -n 's/.*(NEEDED).*\[\(lib\(fabric\|fopd\)[^]]*\)\]/\1/p'
}

for file in "$@"; do is "what $file needs" "$(needed "$file")" ""; done
is "what the plug-in needs" "$(needed "$plug_in")" libfabric.so.1
is "what the plug-in shows" "$(nm --dynamic --defined-only --format=just-symbols "$plug_in")" fopd_ofi_plug_in_1
# Each thread keeps freed coroutine frames in both copies, and the choice among implementations of CRC32C is the same in both.
is "our variables in the plug-in that can be written" \
    "$(nm --demangle --format=posix "$plug_in" | sed -nE '/(vtable|typeinfo)/d; s/^(.*fopd::.*) [bBdDuV] .*/\1/p' | sort)" \
    "fopd::core::(anonymous namespace)::cache
fopd::core::(anonymous namespace)::chosen"
exit $((failures > 0))
