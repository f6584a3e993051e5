#!/bin/bash
# Goal: the fingerprint of a build is another one when a source, the compiler's options or the version are other ones, and
#       is otherwise the same, wherever the sources are.
# Method: cmake/Fingerprint.cmake on two small sources.
#
#   fingerprint_test.sh CMAKE
set -eu
export LC_ALL=C

cmake=$1
script=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/cmake/Fingerprint.cmake
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# fingerprint FOLDER VERSION OPTIONS
fingerprint() {
    printf '%s\n' "$scratch/$1/b.h" "$scratch/$1/a.h" >"$scratch/sources"
    "$cmake" -D "OUTPUT=$scratch/$1/made.h" -D "VERSION=$2" -D "OPTIONS=$3" -D "SOURCES=$scratch/sources" -P "$script"
    sed -n 's/.*kBuild = "\(.*\)";/\1/p' "$scratch/$1/made.h"
}

# differs WHAT FINGERPRINT
differs() {
    [[ $2 =~ ^[0-9.]+\ [0-9a-f]{16}$ ]] || {
        echo "$1: '$2' is no fingerprint" >&2
        failures=$((failures + 1))
    }
    [[ $2 != "$first" ]] || {
        echo "$1: has the same fingerprint" >&2
        failures=$((failures + 1))
    }
}

mkdir "$scratch"/{one,two}
echo "int a;" | tee "$scratch/one/a.h" >"$scratch/two/a.h"
echo "int b;" | tee "$scratch/one/b.h" >"$scratch/two/b.h"
first=$(fingerprint one 1.2.3 "GNU 12 -O2")
made_at=$(stat --format %y "$scratch/one/made.h")
[[ $(fingerprint one 1.2.3 "GNU 12 -O2") == "$first" && $(stat --format %y "$scratch/one/made.h") == "$made_at" ]] ||
    { echo "made again, it is not the same" >&2 && failures=1; }
[[ $(fingerprint two 1.2.3 "GNU 12 -O2") == "$first" ]] ||
    { echo "made from equal sources elsewhere, it is not the same" >&2 && failures=1; }
differs "another version" "$(fingerprint one 1.2.4 "GNU 12 -O2")"
differs "other options" "$(fingerprint one 1.2.3 "GNU 12 -O1")"
echo "int c;" >"$scratch/one/b.h"
differs "another source" "$(fingerprint one 1.2.3 "GNU 12 -O2")"
exit $((failures > 0))
